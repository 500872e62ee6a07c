// Features of earlier prompts: a caption that repeats is encoded once, and the next one may be
// encoded ahead of its picture.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "base/unset_vector.h"
#include "engine/linears_ran.h"

namespace octet::engine {

// What encoded a text.
struct TextRecord {
  std::vector<nn::Profile::KernelUse> kernels = {};
  LinearUses linears = {};
};

struct EncodedText {
  UnsetVector<float> features = {};  // [tokens, TextEncoder::feature_count()]
  TextRecord record = {};
};

class PromptCache {
 public:
  using Text = std::shared_ptr<const EncodedText>;
  using Tokens = std::vector<int32_t>;

  // Null if they are not cached.
  Text find(const Tokens& tokens) {
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->first != tokens) continue;
      entries_.splice(entries_.begin(), entries_, at);
      return entries_.front().second;
    }
    return nullptr;
  }

  // The last one always stays, whatever its size.
  void add(const Tokens& tokens, const Text& text) {
    entries_.emplace_front(tokens, text);
    size_t elements = 0, count = 0;
    for (auto at = entries_.begin(); at != entries_.end();) {
      elements += at->second->features.size();
      const bool stays = count++ == 0 || (elements <= kMostElements && count <= kMostEntries);
      at = stays ? std::next(at) : entries_.erase(at);
    }
  }

 private:
  static constexpr size_t kMostEntries = 16;
  static constexpr size_t kMostElements = size_t{64} << 20;  // 256 MB

  std::list<std::pair<Tokens, Text>> entries_;  // the last used first
};

}  // namespace octet::engine
