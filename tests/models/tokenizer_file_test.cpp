// What a tokenizer.json may say and what is refused, with which sentence.
#include "models/tokenizer/tokenizer_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "formats/error_message.h"
#include "formats/json.h"
#include "models/tokenizer_json.h"

namespace octet::test {
namespace {

using tokenizer::kSplitRegex;
using tokenizer::parse_tokenizer;
using Json = nlohmann::json;

struct Change {
  const char* name;
  std::function<void(Json&)> change;
  const char* sentence;  // a part of it; "" when the file is accepted
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

Json& split_of(Json& root) { return root["pre_tokenizer"]["pretokenizers"][0]; }
Json& bytes_of(Json& root) { return root["pre_tokenizer"]["pretokenizers"][1]; }

Json text_part() { return {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}; }
Json token_part() { return {{"SpecialToken", {{"id", "<x>"}, {"type_id", 0}}}}; }
Json template_of(std::vector<Json> parts) {
  return {{"type", "TemplateProcessing"}, {"single", parts}};
}
Json sequence_of(std::vector<Json> steps) { return {{"type", "Sequence"}, {"processors", steps}}; }

const std::string kLongText(100'000, 'x');

const Change kChanges[] = {
    {"nothing", [](Json&) {}, ""},
    {"an_array", [](Json& r) { r = Json::array(); }, "test: the tokenizer is an array of 0"},
    {"a_string", [](Json& r) { r = "x"; }, "the tokenizer is \"x\", expected an object"},
    {"empty", [](Json& r) { r = Json::object(); }, "\"pre_tokenizer\" is null"},
    {"version", [](Json& r) { r["version"] = "2.0"; }, "\"version\" is \"2.0\", expected null or"},

    {"no_normalizer", [](Json& r) { r.erase("normalizer"); }, ""},
    {"normalizers",
     [](Json& r) {
       r["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array({{{"type", "NFC"}}})}};
     },
     ""},
    {"other_normalizer", [](Json& r) { r["normalizer"]["type"] = "NFKC"; },
     "\"normalizer\" > \"type\" is \"NFKC\", expected \"NFC\""},
    {"normalizer_is_text", [](Json& r) { r["normalizer"] = "NFC"; }, "\"type\" is null"},
    {"other_normalizers",
     [](Json& r) {
       r["normalizer"] = {{"type", "Sequence"},
                          {"normalizers", Json::array({{{"type", "Lowercase"}}})}};
     },
     "a step of \"normalizer\" is \"Lowercase\""},
    {"no_normalizers",
     [](Json& r) {
       r["normalizer"] = {{"type", "Sequence"}};
     },
     "\"normalizers\" is null, expected an array"},

    {"pre_tokenizer_type", [](Json& r) { r["pre_tokenizer"]["type"] = "ByteLevel"; },
     "\"pre_tokenizer\" > \"type\" is \"ByteLevel\", expected \"Sequence\""},
    {"one_step", [](Json& r) { r["pre_tokenizer"]["pretokenizers"].erase(0); }, "has 1 steps"},
    {"steps_are_numbers",
     [](Json& r) {
       r["pre_tokenizer"]["pretokenizers"] = Json::array({1, 2});
     },
     "\"type\" is null, expected \"Split\""},
    {"other_regex", [](Json& r) { split_of(r)["pattern"]["Regex"] = "\\p{N}{1,3}"; },
     "split by \"\\\\p{N}{1,3}\", expected Qwen's rule"},
    {"long_regex", [](Json& r) { split_of(r)["pattern"]["Regex"] = kLongText; }, "xxx..."},
    {"regex_with_line_ends",
     [](Json& r) {
       std::string regex(kSplitRegex);
       for (size_t at; (at = regex.find("\\r\\n")) != regex.npos;) regex.replace(at, 4, "\r\n");
       split_of(r)["pattern"]["Regex"] = regex;
     },
     ""},
    {"string_pattern",
     [](Json& r) {
       split_of(r)["pattern"] = {{"String", " "}};
     },
     "has no Regex pattern"},
    {"pattern_is_text", [](Json& r) { split_of(r)["pattern"] = kSplitRegex; },
     "has no Regex pattern"},
    {"removed", [](Json& r) { split_of(r)["behavior"] = "Removed"; },
     "\"invert\" is false, expected true"},
    {"removed_and_inverted",
     [](Json& r) {
       split_of(r)["behavior"] = "Removed";
       split_of(r)["invert"] = true;
     },
     ""},
    {"inverted", [](Json& r) { split_of(r)["invert"] = true; }, "is true, expected false"},
    {"behavior", [](Json& r) { split_of(r)["behavior"] = "MergedWithNext"; },
     "\"behavior\" is \"MergedWithNext\", expected \"Isolated\" or \"Removed\""},
    {"second_step", [](Json& r) { bytes_of(r)["type"] = "Digits"; },
     "is \"Digits\", expected \"ByteLevel\""},
    {"prefix_space", [](Json& r) { bytes_of(r)["add_prefix_space"] = true; },
     "\"add_prefix_space\" is true, expected false"},
    {"use_regex", [](Json& r) { bytes_of(r).erase("use_regex"); },
     "\"use_regex\" is null, expected false"},

    {"post_processor", [](Json& r) { r["post_processor"]["type"] = "BertProcessing"; },
     "\"post_processor\" > \"type\" is \"BertProcessing\", expected \"ByteLevel\" or"},
    {"post_processor_is_text", [](Json& r) { r["post_processor"] = "ByteLevel"; }, "is null"},
    {"empty_template", [](Json& r) { r["post_processor"] = template_of({text_part()}); }, ""},
    {"template",
     [](Json& r) {
       r["post_processor"] = template_of({token_part(), text_part()});
     },
     "the template of \"post_processor\" has 2 parts, expected the text alone"},
    {"template_of_a_token", [](Json& r) { r["post_processor"] = template_of({token_part()}); },
     "has 1 parts, expected the text alone"},
    {"template_of_numbers", [](Json& r) { r["post_processor"] = template_of({7}); }, "has 1 parts"},
    {"no_template",
     [](Json& r) {
       r["post_processor"] = {{"type", "TemplateProcessing"}};
     },
     "\"single\" is null, expected an array"},
    {"post_processors",
     [](Json& r) {
       r["post_processor"] = sequence_of({r["post_processor"], template_of({text_part()})});
     },
     ""},
    {"post_processors_with_token",
     [](Json& r) {
       r["post_processor"] = sequence_of({template_of({token_part(), text_part()})});
     },
     "has 2 parts"},
    {"post_processors_in_post_processors",
     [](Json& r) { r["post_processor"] = sequence_of({sequence_of({})}); }, "has a sequence in it"},
    {"post_processors_null", [](Json& r) { r["post_processor"] = sequence_of({nullptr}); }, ""},
    {"no_post_processor", [](Json& r) { r["post_processor"] = nullptr; }, ""},
    {"truncation",
     [](Json& r) {
       r["truncation"] = {{"max_length", 8}};
     },
     ""},

    {"no_model", [](Json& r) { r.erase("model"); }, "\"model\" is null, expected an object"},
    {"model_type", [](Json& r) { r["model"]["type"] = "Unigram"; },
     "\"model\" > \"type\" is \"Unigram\", expected \"BPE\"; Octet implements no other"},
    {"dropout", [](Json& r) { r["model"]["dropout"] = 0.1; }, "\"dropout\" is 0.1"},
    {"unknown_token", [](Json& r) { r["model"]["unk_token"] = "<unk>"; }, "is \"<unk>\""},
    {"prefix", [](Json& r) { r["model"]["continuing_subword_prefix"] = "##"; }, "is \"##\""},
    {"suffix", [](Json& r) { r["model"]["end_of_word_suffix"] = "</w>"; }, "is \"</w>\""},
    {"fuse_unk", [](Json& r) { r["model"]["fuse_unk"] = true; }, "\"fuse_unk\" is true"},
    {"byte_fallback", [](Json& r) { r["model"]["byte_fallback"] = true; },
     "\"byte_fallback\" is true, expected null or false"},
    {"ignore_merges", [](Json& r) { r["model"]["ignore_merges"] = true; },
     "\"ignore_merges\" is true"},

    {"no_vocab", [](Json& r) { r["model"].erase("vocab"); }, "\"vocab\" is null"},
    {"vocab_array", [](Json& r) { r["model"]["vocab"] = Json::array(); }, "an array of 0"},
    {"empty_vocab", [](Json& r) { r["model"]["vocab"] = Json::object(); }, "\"vocab\" is empty"},
    {"empty_token", [](Json& r) { r["model"]["vocab"][""] = 290; }, "a token of no characters"},
    {"negative_id", [](Json& r) { r["model"]["vocab"]["a"] = -1; },
     "the id of token \"a\" is -1, expected a whole number from 0 to 16777215"},
    {"large_id", [](Json& r) { r["model"]["vocab"]["a"] = 16777216; }, "is 16777216"},
    {"largest_id", [](Json& r) { r["model"]["vocab"]["zz"] = 16777215; }, ""},
    {"huge_id", [](Json& r) { r["model"]["vocab"]["a"] = UINT64_MAX; }, "18446744073709551615"},
    {"wrapping_id", [](Json& r) { r["model"]["vocab"]["a"] = 4294967296; }, "is 4294967296"},
    {"fractional_id", [](Json& r) { r["model"]["vocab"]["a"] = 1.5; }, "is 1.5"},
    {"whole_float_id", [](Json& r) { r["model"]["vocab"]["a"] = 290.0; }, "is 290.0"},
    {"text_id", [](Json& r) { r["model"]["vocab"]["a"] = "7"; }, "is \"7\""},
    {"same_id", [](Json& r) { r["model"]["vocab"]["zz"] = 65; },
     "has the id 65, which another token has as well"},

    {"no_merges", [](Json& r) { r["model"].erase("merges"); }, "\"merges\" is null"},
    {"empty_merges", [](Json& r) { r["model"]["merges"] = Json::array(); }, ""},
    {"merge_of_unknown", [](Json& r) { r["model"]["merges"][2] = "a zz"; },
     "merge 2 needs the token \"azz\", which the vocabulary lacks"},
    {"unknown_left",
     [](Json& r) {
       r["model"]["vocab"]["zza"] = 290;
       r["model"]["merges"][0] = Json::array({"zz", "a"});
     },
     "merge 0 needs the token \"zz\""},
    {"merge_twice", [](Json& r) { r["model"]["merges"].push_back("b c"); },
     "merge 4, of \"b\" and \"c\", is there twice"},
    {"merge_of_three", [](Json& r) { r["model"]["merges"][0] = "a b c"; },
     "merge 0 is \"a b c\", expected [\"a\", \"b\"] or \"a b\""},
    {"merge_of_one", [](Json& r) { r["model"]["merges"][0] = "ab"; }, "merge 0 is \"ab\""},
    {"merge_of_nothing", [](Json& r) { r["model"]["merges"][0] = " ab"; }, "the token \"\""},
    {"merge_array_of_three",
     [](Json& r) {
       r["model"]["merges"][1] = Json::array({"a", "b", "c"});
     },
     "merge 1 is an array of 3"},
    {"merge_of_numbers",
     [](Json& r) {
       r["model"]["merges"][1] = Json::array({1, 2});
     },
     "merge 1 is an array of 2"},
    {"merge_is_null", [](Json& r) { r["model"]["merges"][1] = nullptr; }, "merge 1 is null"},

    {"no_added_tokens", [](Json& r) { r.erase("added_tokens"); }, ""},
    {"added_object", [](Json& r) { r["added_tokens"] = Json::object(); },
     "\"added_tokens\" is an object, expected an array"},
    {"added_number", [](Json& r) { r["added_tokens"][0] = 7; }, "has no \"content\""},
    {"added_empty", [](Json& r) { r["added_tokens"][0]["content"] = ""; }, "has no \"content\""},
    {"added_without_id", [](Json& r) { r["added_tokens"][0].erase("id"); },
     "the id of token \"<|im_start|>\" is null"},
    {"added_negative", [](Json& r) { r["added_tokens"][0]["id"] = -5; }, "is -5"},
    {"added_twice", [](Json& r) { r["added_tokens"][1]["content"] = "<|im_start|>"; },
     "the added token \"<|im_start|>\" is there twice"},
    {"added_same_id", [](Json& r) { r["added_tokens"][1]["id"] = 300; }, "has the id 300"},
    {"added_id_of_vocab", [](Json& r) { r["added_tokens"][1]["id"] = 65; }, "has the id 65"},
    {"added_in_vocab", [](Json& r) { r["model"]["vocab"]["<x>"] = 302; }, ""},
    {"added_other_than_vocab", [](Json& r) { r["model"]["vocab"]["<x>"] = 290; },
     "\"<x>\" has the id 302, but 290 in the vocabulary"},
    {"not_special", [](Json& r) { r["added_tokens"][0]["special"] = false; }, ""},
    {"lstrip", [](Json& r) { r["added_tokens"][0]["lstrip"] = true; },
     "\"<|im_start|>\" has \"lstrip\" true, expected false"},
    {"rstrip", [](Json& r) { r["added_tokens"][0]["rstrip"] = true; }, "\"rstrip\" true"},
    {"single_word", [](Json& r) { r["added_tokens"][0]["single_word"] = 1; }, "\"single_word\" 1"},
    {"normalized", [](Json& r) { r["added_tokens"][0].erase("normalized"); },
     "\"normalized\" null"},
};

class TokenizerFile : public testing::TestWithParam<Change> {};

TEST_P(TokenizerFile, IsAcceptedOrRefusedWithASentence) {
  Json root = small_tokenizer();
  GetParam().change(root);
  if (GetParam().sentence[0] == '\0') {
    EXPECT_NO_THROW(parse_tokenizer(root, "test"));
    return;
  }
  const std::string message = error_of([&] { parse_tokenizer(root, "test"); });
  EXPECT_TRUE(contains(message, GetParam().sentence)) << message;
  EXPECT_TRUE(message.starts_with("test: ")) << message;
  EXPECT_FALSE(contains(message, "\n")) << message;
  EXPECT_LT(message.size(), 1000u);
}

INSTANTIATE_TEST_SUITE_P(Changes, TokenizerFile, testing::ValuesIn(kChanges),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(TokenizerFileSize, AVocabularyOfQwensSizeFitsTheLimitsOfJson) {
  Json root = small_tokenizer();
  Json& vocab = root["model"]["vocab"];
  Json& merges = root["model"]["merges"];
  for (int i = 0; i < 400; ++i) {
    for (int j = 0; j < 380; ++j) {
      const std::string left = fmt::format("L{}", i), right = fmt::format("R{}", j);
      vocab[left] = 1000 + i;
      vocab[right] = 2000 + j;
      vocab[left + right] = 3000 + i * 380 + j;
      merges.push_back(Json::array({left, right}));
    }
  }
  const auto tables = parse_tokenizer(parse_json(root.dump(), "test"), "test");
  EXPECT_EQ(tables.merges.size(), 152'004u);
  EXPECT_EQ(tables.largest_id, 3000 + 400 * 380 - 1);
}

}  // namespace
}  // namespace octet::test
