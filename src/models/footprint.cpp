#include "models/footprint.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "nn/linear_list.h"
#include "weights/random_weights.h"

namespace octet::models {
namespace {

std::vector<nn::LinearSpec> large_linears(Part& part) {
  nn::LinearList list;
  part.visit_all(list);
  return list.large();
}

}  // namespace

void CountedRun::add(Part& part) {
  parts_.push_back(&part);
  weights::RandomWeights make(device_, {.dtype = how_.dtype,
                                        .int8 = how_.int8,
                                        .floating = how_.floating,
                                        .numbers = false,
                                        .progress = {}});
  part.visit_all(make);
  weight_bytes_ = device_.memory().used;
  device_.reset_peak();
}

uint64_t unit_bytes(Part& part, int64_t unit, const RunAs& how, const Backend* device) {
  weights::WeightCount count(how.dtype, how.int8, device, how.floating);
  part.visit(unit, count);
  return static_cast<uint64_t>(count.bytes());
}

WeightBytes weight_bytes(Part& part, const RunAs& how, const Backend* device) {
  WeightBytes bytes;
  for (int64_t unit = 0; unit < part.unit_count(); ++unit) {
    const uint64_t of_unit = unit_bytes(part, unit, how, device);
    bytes.all += of_unit;
    bytes.largest_unit = std::max(bytes.largest_unit, of_unit);
  }
  return bytes;
}

DenoisingBytes denoising_bytes(std::span<Network* const> networks, const Extent& extent,
                               const RunAs& how) {
  CountedRun run(how);
  for (Network* network : networks) run.add(*network);
  nn::Context& ctx = run.ctx();
  DenoisingBytes bytes;
  std::vector<std::unique_ptr<Conditioning>> conditionings;
  std::vector<std::unique_ptr<Timeline>> timelines;
  for (const Network* network : networks) {
    const int64_t tokens = network->sees_text() ? extent.text_tokens : 0;
    const std::vector<float> features(static_cast<size_t>(tokens * network->text_features()));
    conditionings.push_back(network->prepare(ctx, features, extent.grid));
  }
  bytes.conditioning = run.used();
  std::vector<float> times(static_cast<size_t>(extent.steps));
  for (size_t i = 0; i < times.size(); ++i) {
    times[i] = static_cast<float>(i) / static_cast<float>(times.size());
  }
  for (const Network* network : networks) {
    timelines.push_back(network->make_timeline(ctx, times));
    timelines.back()->go_to(ctx, 0);
  }
  bytes.timelines = run.used() - bytes.conditioning;

  // As the sampler has them.
  const int64_t rows = extent.grid.tokens(), channels = networks.front()->latent_channels();
  const nn::Matrix z(ctx.backend, DType::f32, rows, channels);
  const nn::Matrix moved(ctx.backend, DType::f32, rows, channels);
  const nn::Matrix rounded = ctx.matrix(ctx.dtype == DType::f32 ? 0 : rows, channels);
  std::vector<nn::Matrix> velocities;
  for (size_t i = 0; i < networks.size(); ++i) velocities.push_back(ctx.matrix(rows, channels));
  bytes.latents = run.used() - bytes.timelines - bytes.conditioning;

  // The first step completes the timelines, the second is recorded, and from the third on all have
  // one block of memory.
  const auto pass = [&](size_t i) {
    networks[i]->velocity(ctx, *conditionings[i], *timelines[i],
                          rounded.row_count() > 0 ? rounded : z, velocities[i]);
  };
  std::vector<std::unique_ptr<Recording>> recordings;
  for (size_t i = 0; i < networks.size(); ++i) {
    pass(i);
    recordings.push_back(ctx.backend.record([&pass, i] { pass(i); }));
  }
  for (int step = 0; step < 2; ++step) {
    for (const auto& recording : recordings) recording->run();
  }
  bytes.work = run.peak() - bytes.latents - bytes.timelines - bytes.conditioning;

  const auto batch = static_cast<uint64_t>(extent.batch);
  bytes.conditioning *= batch;
  bytes.latents *= batch;
  bytes.work *= batch;
  return bytes;
}

uint64_t encoding_bytes(TextEncoder& encoder, int64_t tokens, const RunAs& how) {
  CountedRun run(how);
  run.add(encoder);
  encoder.encode(run.ctx(), std::vector<int32_t>(static_cast<size_t>(tokens)), {});
  return run.peak();
}

uint64_t decoding_bytes(const Decoder& decoder, const Grid& grid, DType dtype) {
  return decoder.image_bytes(grid, dtype) + kOpsBytes;
}

uint64_t least_decoding_bytes(const Decoder& decoder, const Grid& grid, DType dtype) {
  return decoder.least_image_bytes(grid, dtype) + kOpsBytes;
}

uint64_t weight_bytes_in(Network& network, std::string_view format) {
  constexpr int64_t kNf4Block = 64;  // weights with an F32 factor
  const bool four_bits = format == "nf4", floating = format == "bf16" || four_bits;
  uint64_t bytes = weight_bytes(network, {.int8 = !floating}).all;
  if (!four_bits) return bytes;
  for (const nn::LinearSpec& spec : large_linears(network)) {
    const int64_t weights = spec.n() * spec.k;
    bytes -= static_cast<uint64_t>(2 * weights - weights / 2 - weights / kNf4Block * 4);
  }
  return bytes;
}

uint64_t dequantized_bytes_in(Network& network, std::string_view format) {
  if (format != "nf4" && format != "fake") return 0;
  int64_t largest = 0;
  for (const nn::LinearSpec& spec : large_linears(network)) {
    largest = std::max(largest, spec.n() * spec.k);
  }
  return static_cast<uint64_t>(2 * largest);
}

}  // namespace octet::models
