// Features of earlier prompts: a caption that repeats is encoded once.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace octet::engine {

class PromptCache {
 public:
  using Features = std::shared_ptr<const std::vector<float>>;
  using Tokens = std::vector<int32_t>;

  // Null if they are not cached.
  Features find(const Tokens& tokens) {
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->first != tokens) continue;
      entries_.splice(entries_.begin(), entries_, at);
      return entries_.front().second;
    }
    return nullptr;
  }

  // The last one always stays, whatever its size.
  void add(const Tokens& tokens, const Features& features) {
    entries_.emplace_front(tokens, features);
    size_t elements = 0, count = 0;
    for (auto at = entries_.begin(); at != entries_.end();) {
      elements += at->second->size();
      const bool stays = count++ == 0 || (elements <= kMostElements && count <= kMostEntries);
      at = stays ? std::next(at) : entries_.erase(at);
    }
  }

 private:
  static constexpr size_t kMostEntries = 16;
  static constexpr size_t kMostElements = size_t{64} << 20;  // 256 MB

  std::list<std::pair<Tokens, Features>> entries_;  // the last used first
};

}  // namespace octet::engine
