// A small tokenizer.json of Octet's own, for models that are made up rather than trained: the 256
// bytes, merges for the words of captions, and the special tokens that the prompt template needs.
// It has the same form as Qwen's, so that every reader of that one reads it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/tokenizer/bpe.h"
#include "models/tokenizer/byte_alphabet.h"
#include "models/tokenizer/pre_tokenizer.h"

namespace octet::test {

// Units of captions and of the prompt template that become one token each, separated by bars.
// Earlier ones come first in rank, so that longer words are built from them.
inline constexpr std::string_view kUnits =
    R"(":"|","|":{"|":[|"},"|":["|"}|"]|{"|},{"|]}})"
    "| a| the| of| in| and| with| on| at| an| to| is|er|ing|user|assistant|high|_level"
    "|_description|style|_deconstruction|compositional|aesthetics|lighting|photo|medium|art"
    "|_style|color|_palette|background|elements|type|obj|text|bbox|desc|photograph|illustration"
    "|painting|graphic|_design| photograph| style| lighting| light| soft| warm| cool| dark"
    "| bright| red| green| blue| yellow| orange| white| black| grey| brown| cream| sky| sea"
    "| tree| house| street| city| mountain| river| wall| floor| table| window| door| person"
    "| woman| man| child| face| hand| hair| cat| dog| bird| fish| flower| leaf| poster| sign"
    "| letters| title| bold| serif| large| small| long| short| left| right| center| above"
    "| below| behind| front| flat| deep| shadow| texture| background| transparent| image"
    "| picture| scene| view| close| up| wide| focus| lens";

inline constexpr std::string_view kSpecialTokens[] = {"<|endoftext|>", "<|im_start|>",
                                                      "<|im_end|>"};

class MergeLearner {
 public:
  MergeLearner() {
    for (int byte = 0; byte < 256; ++byte) {
      id_of(tokenizer::in_byte_alphabet(std::string(1, static_cast<char>(byte))));
    }
  }

  void learn(std::string_view unit) {
    std::vector<int32_t> pieces;
    for (const char byte : unit) pieces.push_back(static_cast<unsigned char>(byte));
    table_.apply(pieces);
    // What the merges so far leave of the unit is joined from the left.
    for (size_t i = 1; i < pieces.size(); ++i) {
      const std::string left = tokens_[static_cast<size_t>(pieces[0])];
      const std::string right = tokens_[static_cast<size_t>(pieces[i])];
      const int32_t merged = id_of(left + right);
      if (table_.add(pieces[0], pieces[i], merged)) merges_.emplace_back(left, right);
      pieces[0] = merged;
    }
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<std::pair<std::string, std::string>>& merges() const { return merges_; }

 private:
  int32_t id_of(const std::string& token) {
    const auto [entry, is_new] = ids_.try_emplace(token, static_cast<int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(token);
    return entry->second;
  }

  std::vector<std::string> tokens_;  // in the byte alphabet, by id
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<std::pair<std::string, std::string>> merges_;
  tokenizer::MergeTable table_;
};

// Ids from 0 without gaps: bytes, merged tokens, then <|endoftext|>, <|im_start|>, <|im_end|>.
inline std::string make_byte_tokenizer_json() {
  using nlohmann::ordered_json;
  MergeLearner learner;
  for (size_t begin = 0; begin < kUnits.size();) {
    const size_t end = std::min(kUnits.find('|', begin), kUnits.size());
    learner.learn(kUnits.substr(begin, end - begin));
    begin = end + 1;
  }
  const size_t tokens = learner.tokens().size();
  ordered_json vocab = ordered_json::object();
  for (size_t id = 0; id < tokens; ++id) vocab.emplace(learner.tokens()[id], id);
  ordered_json merges = ordered_json::array();
  for (const auto& [left, right] : learner.merges()) {
    merges.push_back(ordered_json::array({left, right}));
  }
  ordered_json added = ordered_json::array();
  for (const std::string_view content : kSpecialTokens) {
    added.push_back({{"id", tokens + added.size()},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const ordered_json split = {{"type", "Split"},
                              {"pattern", {{"Regex", tokenizer::kSplitRegex}}},
                              {"behavior", "Isolated"},
                              {"invert", false}};
  const ordered_json byte_level = {{"type", "ByteLevel"},
                                   {"add_prefix_space", false},
                                   {"trim_offsets", false},
                                   {"use_regex", false}};
  ordered_json root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  root["added_tokens"] = std::move(added);
  root["normalizer"] = {{"type", "NFC"}};
  root["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", ordered_json::array({split, byte_level})}};
  root["post_processor"] = byte_level;
  root["decoder"] = byte_level;
  root["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", ""},
                   {"end_of_word_suffix", ""},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", false}};
  root["model"]["vocab"] = std::move(vocab);
  root["model"]["merges"] = std::move(merges);
  return root.dump();
}

}  // namespace octet::test
