// What networks prepared from texts, sizes and schedules for the last picture, for reuse when the
// next has the same.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/linears_ran.h"
#include "engine/prompt_cache.h"
#include "models/part.h"

namespace octet::engine {

// For a branch.
struct PreparedText {
  PromptCache::Tokens tokens;
  models::Grid grid;
  std::unique_ptr<models::Conditioning> conditioning;
  LinearUses linears = {};  // those that computed it
};

// For a network.
struct PreparedTimes {
  std::unique_ptr<models::Timeline> timeline;
  LinearUses linears = {};  // likewise
};

class Preparations {
 public:
  Preparations(size_t branches, size_t networks) : texts_(branches), times_(networks) {}

  // Null if what is kept is for another one.
  PreparedText* text(size_t branch, const PromptCache::Tokens& tokens, const models::Grid& grid) {
    auto& kept = texts_[branch];
    return kept && kept->tokens == tokens && kept->grid == grid ? &*kept : nullptr;
  }
  PreparedTimes* times(size_t network, std::span<const float> times) {
    auto& kept = times_[network];
    return kept && std::ranges::equal(kept->timeline->times(), times) ? &*kept : nullptr;
  }

  // Called before a replacement is made, so that both are never in memory.
  void forget_text(size_t branch) { texts_[branch].reset(); }
  void forget_times(size_t network) { times_[network].reset(); }
  void forget_texts() {
    for (auto& text : texts_) text.reset();
  }
  void forget() {
    forget_texts();
    for (auto& times : times_) times.reset();
  }

  PreparedText& keep(size_t branch, PreparedText made) {
    return texts_[branch].emplace(std::move(made));
  }
  PreparedTimes& keep(size_t network, PreparedTimes made) {
    return times_[network].emplace(std::move(made));
  }

  // Adds those that computed what is kept for a branch and its network.
  void add_linears(size_t branch, size_t network, LinearUses& linears) const {
    const auto add = [&](const auto& kept) {
      if (kept) linears.insert(kept->linears.begin(), kept->linears.end());
    };
    add(texts_[branch]);
    add(times_[network]);
  }

 private:
  std::vector<std::optional<PreparedText>> texts_;
  std::vector<std::optional<PreparedTimes>> times_;
};

}  // namespace octet::engine
