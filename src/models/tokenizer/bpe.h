// Byte-pair merging: of all neighbouring pairs of tokens for which there is a merge, the one of the
// lowest rank (the leftmost of several) becomes one token, until there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace octet::tokenizer {

class MergeTable {
 public:
  // The next merge in rank: `left` followed by `right` becomes `merged`. False, and nothing is
  // added, when there is one for the pair already.
  bool add(int32_t left, int32_t right, int32_t merged);

  // The tokens of one unit merged, in place. Takes n log n steps for n tokens.
  void apply(std::vector<int32_t>& tokens) const;

  size_t size() const { return merges_.size(); }

 private:
  struct Merge {
    int32_t rank;
    int32_t merged;
  };
  const Merge* find(int32_t left, int32_t right) const;

  // Ids are small numbers, and identity hashing of a pair would put them in few rows.
  struct PairHash {
    size_t operator()(uint64_t pair) const { return mixed_bits(pair); }
  };
  std::unordered_map<uint64_t, Merge, PairHash> merges_;
};

}  // namespace octet::tokenizer
