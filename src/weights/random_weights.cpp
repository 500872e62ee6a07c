#include "weights/random_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/random_value.h"
#include "weights/loader.h"

namespace octet::weights {
namespace {

using nn::ConvSpec;
using nn::LinearSpec;

constexpr int64_t kChunkElements = int64_t{16} << 20;  // on their way to a device at a time
constexpr int64_t kTaskElements = 32 * 1024;           // enough to outweigh taking a task
// Codes reach 3.5 deviations, and stay below 127.
constexpr float kCodeDeviation = 30;

std::vector<RandomTensor> weights_of(const LinearSpec& spec) {
  std::vector<RandomTensor> parts;
  for (const auto& part : spec.layouts.back()) {
    parts.push_back({part.name + ".weight", {part.rows, spec.k}, spec.k});
  }
  return parts;
}

std::vector<RandomTensor> biases_of(const LinearSpec& spec) {
  std::vector<RandomTensor> parts;
  if (!spec.bias) return parts;
  for (const auto& part : spec.layouts.back()) parts.push_back({part.name + ".bias", {part.rows}});
  return parts;
}

RandomTensor weight_of(const ConvSpec& spec) {
  return {spec.name + ".weight",
          {spec.out, spec.in, spec.kernel, spec.kernel},
          spec.in * spec.kernel * spec.kernel};
}

void check_dtype(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::bf16,
        "random weights: the type is {}, expected F32 or BF16", name_of(dtype));
}

}  // namespace

Spread default_spread(const RandomTensor& tensor) {
  if (tensor.inputs > 0) return {0, 1 / std::sqrt(static_cast<float>(tensor.inputs))};
  return tensor.name.ends_with(".bias") ? Spread{0, 0.02f} : Spread{1, 0.1f};
}

void fill_random(uint64_t seed, const RandomTensor& tensor, const Spread& spread, int64_t first,
                 std::span<float> values) {
  const uint64_t own = seed_of(seed, tensor.name);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        spread.mean + spread.deviation * random_value(own, static_cast<uint64_t>(first) + i);
  }
}

void RandomWeights::made(int64_t weights) {
  if (options_.progress) options_.progress(weights);
}

// The tensors one after the other.
Buffer RandomWeights::make(const std::vector<RandomTensor>& parts, DType dtype) {
  check_dtype(dtype);
  const int64_t bytes_each = bits_of(dtype) / 8;
  int64_t total = 0, largest = 0;
  for (const RandomTensor& part : parts) {
    total += part.elements();
    largest = std::max(largest, part.elements());
  }
  Buffer buffer = backend_.allocate(static_cast<size_t>(total * bytes_each));
  if (!options_.numbers) return buffer;
  const Buffer host =
      allocate_host(static_cast<size_t>(std::min(largest, kChunkElements) * bytes_each));
  std::byte* to = buffer.data();
  for (const RandomTensor& part : parts) {
    const Spread spread = default_spread(part);
    const int64_t count = part.elements();
    for (int64_t first = 0; first < count; first += kChunkElements) {
      const int64_t chunk = std::min(kChunkElements, count - first);
      backend_.pool().run(ceil_div(chunk, kTaskElements), [&](int64_t task, int) {
        const int64_t at = task * kTaskElements;
        std::vector<float> values(static_cast<size_t>(std::min(kTaskElements, chunk - at)));
        fill_random(options_.seed, part, spread, first + at, values);
        store_f32(values, dtype, host.data() + at * bytes_each);
      });
      backend_.copy_to_device(to, host.data(), static_cast<size_t>(chunk * bytes_each));
      to += chunk * bytes_each;
      made(chunk);
    }
  }
  return buffer;
}

// Codes are drawn as such: quantizing random numbers of two large models would take minutes.
QWeight RandomWeights::make_int8(const LinearSpec& spec) {
  const int64_t n = spec.n(), k = spec.k;
  std::vector<float> bias;
  for (const RandomTensor& part : biases_of(spec)) {
    std::vector<float> values(static_cast<size_t>(part.shape[0]));
    fill_random(options_.seed, part, default_spread(part), 0, values);
    bias.insert(bias.end(), values.begin(), values.end());
  }
  ConstTensorView bias_view;
  if (!bias.empty()) {
    bias_view = ConstTensorView(reinterpret_cast<const std::byte*>(bias.data()), DType::f32, {n});
  }
  if (!options_.numbers) return backend_.begin_pack(n, k, bias_view, {}, spec.order);
  const Buffer codes = allocate_host(static_cast<size_t>(n * k));
  const Buffer scales = allocate_host(static_cast<size_t>(n) * sizeof(float));
  std::byte* to = codes.data();
  float* scale = reinterpret_cast<float*>(scales.data());
  for (const RandomTensor& part : weights_of(spec)) {
    const uint64_t own = seed_of(options_.seed, part.name);
    const int64_t rows = part.shape[0];
    backend_.pool().run(rows, [&](int64_t row, int) {
      auto* row_codes = reinterpret_cast<int8_t*>(to + row * k);
      for (int64_t j = 0; j < k; ++j) {
        const float value = random_value(own, static_cast<uint64_t>(row * k + j));
        row_codes[j] = static_cast<int8_t>(static_cast<int>(kCodeDeviation * value + 128.5f) - 128);
      }
    });
    std::fill_n(scale, rows, default_spread(part).deviation / kCodeDeviation);
    to += rows * k;
    scale += rows;
    made(rows * k);
  }
  return backend_.pack({codes.view(DType::i8, {n, k}), scales.view(DType::f32, {n})}, bias_view, {},
                       spec.order);
}

void RandomWeights::linear(nn::Linear& into, const LinearSpec& spec) {
  into = {.layer = spec.layer, .name = spec.name(), .n = spec.n(), .k = spec.k};
  nn::LinearPart& whole = into.parts.emplace_back();
  whole.n = into.n;
  whole.k = into.k;
  whole.dtype = options_.dtype;
  const bool int8 = options_.int8 && !(options_.floating && options_.floating(spec));
  into.precision = !spec.large ? nn::Precision::kept
                   : int8      ? nn::Precision::int8
                               : nn::Precision::floating;
  if (into.precision == nn::Precision::int8) {
    whole.quantized = make_int8(spec);
    return;
  }
  whole.weight = make(weights_of(spec), options_.dtype);
  if (spec.bias) whole.bias = make(biases_of(spec), options_.dtype);
}

void RandomWeights::conv(nn::Conv& into, const ConvSpec& spec) {
  const RandomTensor tensor = weight_of(spec);
  std::vector<float> stored(static_cast<size_t>(tensor.elements()));
  fill_random(options_.seed, tensor, default_spread(tensor), 0, stored);
  const std::vector<float> arranged = taps_first(stored, spec);
  std::vector<std::byte> bytes(arranged.size() * static_cast<size_t>(bits_of(options_.dtype) / 8));
  store_f32(arranged, options_.dtype, bytes.data());
  into.kernel = spec.kernel;
  into.layer = spec.name;
  into.matrix.n = spec.out;
  into.matrix.k = tensor.inputs;
  into.matrix.dtype = options_.dtype;
  into.matrix.weight = backend_.allocate(bytes.size());
  backend_.copy_to_device(into.matrix.weight.data(), bytes.data(), bytes.size());
  made(tensor.elements());
  into.matrix.bias = make({{spec.name + ".bias", {spec.out}}}, options_.dtype);
}

void RandomWeights::vector(nn::Vector& into, const std::string& name, int64_t length) {
  into.memory = make({{name, {length}}}, DType::f32);
  into.length = length;
}

void RandomWeights::table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) {
  if (into.in_files) return;
  into.memory = make({{name, {rows, columns}, 1}}, options_.dtype);
  into.dtype = options_.dtype;
  into.rows = rows;
  into.columns = columns;
}

void WeightCount::count(int64_t parameters, int64_t bytes_each) {
  parameters_ += parameters;
  bytes_ += parameters * bytes_each;
}

void WeightCount::linear(nn::Linear&, const LinearSpec& spec) {
  const bool int8 = spec.large && int8_ && !(floating_ && floating_(spec));
  const int64_t n = spec.n(), k = spec.k;
  if (spec.bias) count(n, int8 ? 4 : bytes_each_);
  if (!int8) return count(n * k, bytes_each_);
  parameters_ += n * k;
  bytes_ += backend_ == nullptr ? n * k + n * 4  // codes and scales
                                : static_cast<int64_t>(backend_->packed_weight_bytes(n, k));
}

void WeightCount::conv(nn::Conv&, const ConvSpec& spec) {
  count(spec.out * spec.in * spec.kernel * spec.kernel + spec.out, bytes_each_);
}

void WeightCount::vector(nn::Vector&, const std::string&, int64_t length) { count(length, 4); }

void WeightCount::table(nn::Table& into, const std::string&, int64_t rows, int64_t columns) {
  count(rows * columns, into.in_files ? 0 : bytes_each_);
}

}  // namespace octet::weights
