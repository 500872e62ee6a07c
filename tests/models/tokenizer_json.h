// A tokenizer.json small enough to work out its ids by hand.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/tokenizer/byte_alphabet.h"
#include "models/tokenizer/pre_tokenizer.h"

namespace octet::test {

// Token `byte` is the byte of that number. The merges make 256 "ab", 257 "bc", 258 "abc", 259 " a".
// 300 is <|im_start|>, 301 <|im_end|>, 302 <x>, 303 <x>y.
inline nlohmann::json small_tokenizer() {
  using nlohmann::json;
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[tokenizer::in_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  }
  vocab["ab"] = 256;
  vocab["bc"] = 257;
  vocab["abc"] = 258;
  vocab["\u0120a"] = 259;
  json added = json::array();
  for (const char* content : {"<|im_start|>", "<|im_end|>", "<x>", "<x>y"}) {
    added.push_back({{"id", 300 + added.size()},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", tokenizer::kSplitRegex}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  json merges = json::array();
  merges.push_back(json::array({"b", "c"}));
  merges.push_back("a b");
  merges.push_back(json::array({"a", "bc"}));
  merges.push_back(json::array({"\u0120", "a"}));
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", json::array({split, bytes})}}},
          {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocab},
            {"merges", merges}}}};
}

}  // namespace octet::test
