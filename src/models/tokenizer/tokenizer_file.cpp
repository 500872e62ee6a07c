#include "models/tokenizer/tokenizer_file.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/never_destroyed.h"
#include "formats/json.h"
#include "formats/text.h"
#include "models/tokenizer/byte_alphabet.h"
#include "models/tokenizer/pre_tokenizer.h"

namespace octet::tokenizer {
namespace {

using nlohmann::json;
using Vocabulary = std::unordered_map<std::string, int32_t>;

class TokenizerReader {
 public:
  TokenizerReader(const json& root, const std::string& what) : root_(root), what_(what) {}

  TokenizerTables read() {
    check(root_.is_object(), "{}: the tokenizer is {}, expected an object", what_, describe(root_));
    expect(root_, "", "version", {nullptr, "1.0"});
    read_normalizer(member(root_, "normalizer"));
    read_pre_tokenizer();
    read_post_processor(member(root_, "post_processor"));
    const json& model = required(root_, "", "model", json::value_t::object);
    read_model(model);
    read_vocabulary(required(model, "model", "vocab", json::value_t::object));
    read_merges(required(model, "model", "merges", json::value_t::array));
    if (!member(root_, "added_tokens").is_null()) {
      read_added_tokens(required(root_, "", "added_tokens", json::value_t::array));
    }
    return std::move(tables_);
  }

 private:
  static const json& member(const json& object, const char* key) {
    static const auto& nothing = never_destroyed<json>();
    if (!object.is_object()) return nothing;
    const auto found = object.find(key);
    return found == object.end() ? nothing : *found;
  }

  static std::string path(std::string_view parent, const char* key) {
    if (parent.empty()) return in_quotes(key);
    return fmt::format("{} > {}", in_quotes(parent), in_quotes(key));
  }

  const json& required(const json& object, std::string_view parent, const char* key,
                       json::value_t type) const {
    const json& value = member(object, key);
    check(value.type() == type, "{}: {} is {}, expected {}", what_, path(parent, key),
          describe(value), type == json::value_t::object ? "an object" : "an array");
    return value;
  }

  // A missing member counts as null.
  void expect(const json& object, std::string_view parent, const char* key,
              std::initializer_list<json> accepted) const {
    const json& value = member(object, key);
    if (std::ranges::find(accepted, value) != accepted.end()) return;
    std::string list;
    for (const json& one : accepted) {
      if (!list.empty()) list += " or ";
      list += describe(one);
    }
    fail("{}: {} is {}, expected {}; Octet implements no other", what_, path(parent, key),
         describe(value), list);
  }

  void read_normalizer(const json& normalizer) {
    if (normalizer.is_null()) return;
    const json& type = member(normalizer, "type");
    if (type == "Sequence") {
      const json& steps = required(normalizer, "normalizer", "normalizers", json::value_t::array);
      for (const json& step : steps) {
        check(member(step, "type") == "NFC", "{}: a step of \"normalizer\" is {}, expected \"NFC\"",
              what_, describe(member(step, "type")));
        tables_.normalizes = true;
      }
      return;
    }
    expect(normalizer, "normalizer", "type", {"NFC"});
    tables_.normalizes = true;
  }

  void read_pre_tokenizer() const {
    const json& pre_tokenizer = required(root_, "", "pre_tokenizer", json::value_t::object);
    expect(pre_tokenizer, "pre_tokenizer", "type", {"Sequence"});
    const json& steps =
        required(pre_tokenizer, "pre_tokenizer", "pretokenizers", json::value_t::array);
    check(steps.size() == 2, "{}: \"pre_tokenizer\" has {} steps, expected a Split and a ByteLevel",
          what_, steps.size());
    const json& split = steps[0];
    expect(split, "pre_tokenizer", "type", {"Split"});
    const json& regex = member(member(split, "pattern"), "Regex");
    check(regex.is_string(), "{}: the Split of \"pre_tokenizer\" has no Regex pattern", what_);
    check(is_known_regex(regex.get<std::string>()),
          "{}: the text has to be split by {}, expected Qwen's rule {}; Octet implements no other",
          what_, describe(regex), in_quotes(kSplitRegex));
    // Every character belongs to a match, so keeping the matches and removing the rest ("Removed"
    // with "invert") is the same as cutting at their borders ("Isolated").
    const bool removes = member(split, "behavior") == "Removed";
    expect(split, "pre_tokenizer", "behavior", {"Isolated", "Removed"});
    expect(split, "pre_tokenizer", "invert", {removes});
    const json& bytes = steps[1];
    expect(bytes, "pre_tokenizer", "type", {"ByteLevel"});
    expect(bytes, "pre_tokenizer", "add_prefix_space", {false});
    expect(bytes, "pre_tokenizer", "use_regex", {false});  // missing means true
  }

  // Writers differ in whether CR and LF are escapes of the expression or of the JSON text.
  static bool is_known_regex(const std::string& regex) {
    std::string escaped;
    for (const char c : regex) {
      if (c == '\r') {
        escaped += "\\r";
      } else if (c == '\n') {
        escaped += "\\n";
      } else {
        escaped += c;
      }
    }
    return escaped == kSplitRegex;
  }

  // Only those that leave the ids as they are: the byte-level one, and a template of only the text,
  // which newer writers put into every file.
  void read_post_processor(const json& processor) const {
    if (processor.is_null()) return;
    expect(processor, "post_processor", "type", {"ByteLevel", "TemplateProcessing", "Sequence"});
    if (processor["type"] == "Sequence") {
      const json& steps = required(processor, "post_processor", "processors", json::value_t::array);
      for (const json& step : steps) {
        check(member(step, "type") != "Sequence", "{}: \"post_processor\" has a sequence in it",
              what_);
        read_post_processor(step);
      }
    }
    if (processor["type"] == "TemplateProcessing") {
      const json& parts = required(processor, "post_processor", "single", json::value_t::array);
      check(parts.size() == 1 && member(member(parts[0], "Sequence"), "id") == "A",
            "{}: the template of \"post_processor\" has {} parts, expected the text alone; Octet "
            "implements no other",
            what_, parts.size());
    }
  }

  void read_model(const json& model) const {
    expect(model, "model", "type", {"BPE"});
    expect(model, "model", "dropout", {nullptr});
    expect(model, "model", "unk_token", {nullptr});
    expect(model, "model", "continuing_subword_prefix", {nullptr, ""});
    expect(model, "model", "end_of_word_suffix", {nullptr, ""});
    expect(model, "model", "fuse_unk", {nullptr, false});
    expect(model, "model", "byte_fallback", {nullptr, false});
    expect(model, "model", "ignore_merges", {nullptr, false});
  }

  int32_t id_of(const json& value, const std::string& token) const {
    // As unsigned, what is negative is above the range as well.
    const bool fits =
        value.is_number_integer() && value.get<uint64_t>() <= static_cast<uint64_t>(kMaxTokenId);
    if (!fits) {
      fail("{}: the id of token {} is {}, expected a whole number from 0 to {}", what_,
           in_quotes(token), describe(value), kMaxTokenId);
    }
    return value.get<int32_t>();
  }

  void claim(int32_t id, const std::string& token) {
    check(ids_.insert(id).second, "{}: token {} has the id {}, which another token has as well",
          what_, Quoted{token}, id);
    tables_.largest_id = std::max(tables_.largest_id, id);
  }

  void read_vocabulary(const json& vocab) {
    check(!vocab.empty(), "{}: \"model\" > \"vocab\" is empty", what_);
    vocabulary_.reserve(vocab.size());
    ids_.reserve(vocab.size());
    for (const auto& [token, value] : vocab.items()) {
      check(!token.empty(), "{}: the vocabulary has a token of no characters", what_);
      const int32_t id = id_of(value, token);
      claim(id, token);
      vocabulary_.emplace(token, id);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto found =
          vocabulary_.find(in_byte_alphabet(std::string(1, static_cast<char>(byte))));
      tables_.byte_ids[static_cast<size_t>(byte)] = found == vocabulary_.end() ? -1 : found->second;
    }
  }

  int32_t known(const std::string& token, size_t merge) const {
    const auto found = vocabulary_.find(token);
    check(found != vocabulary_.end(), "{}: merge {} needs the token {}, which the vocabulary lacks",
          what_, merge, Quoted{token});
    return found->second;
  }

  void read_merges(const json& merges) {
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right] = sides_of(merges[i], i);
      const int32_t merged = known(left + right, i);
      check(tables_.merges.add(known(left, i), known(right, i), merged),
            "{}: merge {}, of {} and {}, is there twice", what_, i, Quoted{left}, Quoted{right});
    }
  }

  // Either ["a", "b"] or, in files of older writers, "a b".
  std::pair<std::string, std::string> sides_of(const json& merge, size_t index) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    if (const auto* text = merge.get_ptr<const std::string*>()) {
      const size_t space = text->find(' ');
      if (space != text->npos && text->find(' ', space + 1) == text->npos) {
        return {text->substr(0, space), text->substr(space + 1)};
      }
    }
    fail("{}: merge {} is {}, expected [\"a\", \"b\"] or \"a b\"", what_, index, describe(merge));
  }

  void read_added_tokens(const json& added) {
    std::unordered_set<std::string> contents;
    for (const json& token : added) {
      const auto* content = member(token, "content").get_ptr<const std::string*>();
      check(content != nullptr && !content->empty(),
            "{}: an entry of \"added_tokens\" has no \"content\"", what_);
      check(contents.insert(*content).second, "{}: the added token {} is there twice", what_,
            Quoted{*content});
      for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
        const json& value = member(token, flag);
        check(value == false,
              "{}: the added token {} has \"{}\" {}, expected false; Octet implements no other",
              what_, Quoted{*content}, flag, describe(value));
      }
      const int32_t id = id_of(member(token, "id"), *content);
      const auto in_vocabulary = vocabulary_.find(*content);
      if (in_vocabulary == vocabulary_.end()) {
        claim(id, *content);
      } else if (in_vocabulary->second != id) {
        fail("{}: the added token {} has the id {}, but {} in the vocabulary", what_,
             in_quotes(*content), id, in_vocabulary->second);
      }
      tables_.added_tokens.push_back({*content, id});
    }
  }

  const json& root_;
  const std::string& what_;
  TokenizerTables tables_;
  Vocabulary vocabulary_;
  std::unordered_set<int32_t> ids_;
};

}  // namespace

TokenizerTables parse_tokenizer(const json& root, const std::string& what) {
  return TokenizerReader(root, what).read();
}

}  // namespace octet::tokenizer
