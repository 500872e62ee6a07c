#include "engine/work_bytes.h"

#include <algorithm>

#include "backend/host_backend.h"
#include "base/free_memory.h"
#include "engine/host_memory.h"

namespace octet::engine {
namespace {

constexpr int64_t kSide = 1024;
// Few, so that counting is quick: bytes grow evenly with these.
constexpr int64_t kTextTokens = 64, kSteps = 8;

}  // namespace

double free_for_work(const Backend& backend) {
  const auto at_hand = backend.free_memory();
  return at_hand ? static_cast<double>(*at_hand) : free_memory().value_or(FreeMemory{}).bytes;
}

double free_for_work(const Backend& backend, uint64_t budget) {
  double free = free_for_work(backend);
  if (keeps_data_on_host(backend)) {
    free = static_cast<double>(free_for_model(static_cast<uint64_t>(free)));
  }
  if (budget == 0 || backend.memory_limit().bytes > 0) return free;
  return std::min(free, static_cast<double>(budget) - static_cast<double>(backend.memory().used));
}

double WorkBytes::Growth::at(const models::Extent& extent) const {
  return base + per_token * static_cast<double>(extent.grid.tokens()) +
         per_text_token * static_cast<double>(extent.text_tokens) +
         per_step * static_cast<double>(extent.steps);
}

WorkBytes::Growth WorkBytes::growth_of(const std::array<models::Extent, 4>& extents,
                                       const std::array<uint64_t, 4>& bytes) {
  const models::Extent& most = extents[0];
  const auto slope = [&](size_t i, int64_t less) {
    return (static_cast<double>(bytes[0]) - static_cast<double>(bytes[i])) /
           static_cast<double>(less);
  };
  Growth growth{.per_token = slope(1, most.grid.tokens() - extents[1].grid.tokens()),
                .per_text_token = slope(2, most.text_tokens - extents[2].text_tokens),
                .per_step = slope(3, most.steps - extents[3].steps)};
  growth.base = static_cast<double>(bytes[0]) - growth.at(most);
  return growth;
}

WorkBytes::WorkBytes(const models::Model& model, std::span<models::Network* const> networks,
                     const models::RunAs& how, const std::optional<models::RunAs>& text,
                     uint64_t of_ops)
    : of_ops_(of_ops) {
  const int64_t side = std::max(kSide / model.decoder->token_side(), int64_t{2});
  usual_ = {.grid = {side, side}, .text_tokens = 512, .steps = 48};
  // One, and three that are smaller in one way each.
  std::array<models::Extent, 4> extents;
  extents.fill({.grid = usual_.grid, .text_tokens = kTextTokens, .steps = kSteps});
  extents[1].grid = {side / 2, side / 2};
  extents[2].text_tokens = kTextTokens / 2;
  extents[3].steps = kSteps / 2;

  std::array<uint64_t, 4> denoising{}, passes{}, encoding{}, decoding{}, least_decoding{};
  for (size_t i = 0; i < extents.size(); ++i) {
    const models::Extent& extent = extents[i];
    const models::DenoisingBytes step = models::denoising_bytes(networks, extent, how);
    denoising[i] = step.all();
    passes[i] = step.work;
    if (!text) continue;
    encoding[i] = models::encoding_bytes(*model.text_encoder, extent.text_tokens, *text);
    // Beside what is kept of the prompt and the schedule.
    const uint64_t beside = step.all() - step.work + of_ops_;
    decoding[i] = beside + model.decoder->image_bytes(extent.grid, how.dtype);
    least_decoding[i] = beside + model.decoder->least_image_bytes(extent.grid, how.dtype);
  }
  passes_ = growth_of(extents, passes);
  least_decoding_ = growth_of(extents, least_decoding);
  denoising_ = growth_of(extents, denoising);
  encoding_ = growth_of(extents, encoding);
  decoding_ = growth_of(extents, decoding);
}

uint64_t WorkBytes::of_text(int64_t tokens) const {
  return static_cast<uint64_t>(encoding_.at({.grid = usual_.grid, .text_tokens = tokens})) +
         of_ops_;
}

uint64_t WorkBytes::of_steps(const models::Extent& extent) const {
  return static_cast<uint64_t>(static_cast<double>(extent.batch) * denoising_.at(extent)) + of_ops_;
}

uint64_t WorkBytes::of_pass(const models::Extent& extent) const {
  return static_cast<uint64_t>(static_cast<double>(extent.batch) * passes_.at(extent));
}

uint64_t WorkBytes::least_of_decoding(const models::Extent& extent) const {
  return static_cast<uint64_t>(least_decoding_.at(extent));
}

uint64_t WorkBytes::of(const models::Extent& extent) const {
  return std::max({of_steps(extent), static_cast<uint64_t>(encoding_.at(extent)) + of_ops_,
                   static_cast<uint64_t>(decoding_.at(extent))});
}

}  // namespace octet::engine
