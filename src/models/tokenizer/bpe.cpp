#include "models/tokenizer/bpe.h"

#include <functional>
#include <queue>

namespace octet::tokenizer {
namespace {

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

constexpr int32_t kNone = -1;

struct Symbol {
  int32_t token;  // kNone once it was merged into the one before it
  int32_t previous, next;
};

// A pair that could be merged when it was seen; it may be gone by the time its turn comes.
struct Candidate {
  int32_t rank;
  int32_t left;  // index of its first symbol
  int32_t left_token, right_token, merged;

  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

}  // namespace

bool MergeTable::add(int32_t left, int32_t right, int32_t merged) {
  const auto rank = static_cast<int32_t>(merges_.size());
  return merges_.try_emplace(pair_of(left, right), Merge{rank, merged}).second;
}

const MergeTable::Merge* MergeTable::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void MergeTable::apply(std::vector<int32_t>& tokens) const {
  const auto count = static_cast<int32_t>(tokens.size());
  if (count < 2) return;
  std::vector<Symbol> symbols(tokens.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](int32_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const int32_t left_token = symbols[left].token;
    const int32_t right_token = symbols[symbols[left].next].token;
    if (const Merge* merge = find(left_token, right_token)) {
      queue.push({merge->rank, left, left_token, right_token, merge->merged});
    }
  };
  for (int32_t i = 0; i < count; ++i) {
    symbols[i] = {tokens[i], i - 1, i + 1 < count ? i + 1 : kNone};
  }
  for (int32_t i = 0; i + 1 < count; ++i) consider(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    if (left.token != best.left_token || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    if (right.token != best.right_token) continue;
    left.token = best.merged;
    right.token = kNone;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  tokens.clear();
  for (int32_t i = 0; i != kNone; i = symbols[i].next) tokens.push_back(symbols[i].token);
}

}  // namespace octet::tokenizer
