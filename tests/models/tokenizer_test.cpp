// The tokenizer on texts: units, normal form, added tokens, merges, the prompt template, and with
// Qwen's own vocabulary where OCTET_QWEN_TOKENIZER names it.
#include "models/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "formats/text.h"
#include "models/byte_tokenizer.h"
#include "models/qwen3/chat_prompt.h"
#include "models/sample_captions.h"
#include "models/tokenizer/unicode.h"
#include "models/tokenizer_json.h"

namespace octet::test {
using namespace octet::tokenizer;
using namespace octet::qwen3;
namespace {

using Ids = std::vector<int32_t>;
using Units = std::vector<std::string>;

class TokenizerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  }
};

Tokenizer load(const nlohmann::json& json) { return Tokenizer::from_json(json.dump(), "test"); }

Ids bytes_of(std::string_view text) {
  Ids ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

Units units_of(std::string_view text) {
  const std::u32string points = tokenizer::decode_utf8(text);
  Units units;
  for (size_t begin = 0; begin < points.size();) {
    const size_t end = tokenizer::end_of_unit(points, begin);
    std::string& unit = units.emplace_back();
    for (; begin < end; ++begin) append_character(points[begin], unit);
  }
  return units;
}

TEST_F(TokenizerTest, CutsWordsDigitsAndPunctuation) {
  EXPECT_EQ(units_of("A red cube."), (Units{"A", " red", " cube", "."}));
  EXPECT_EQ(units_of("x=12, y"), (Units{"x", "=", "1", "2", ",", " y"}));
  EXPECT_EQ(units_of(" 7 !? (a)"), (Units{" ", "7", " !?", " (", "a", ")"}));
  EXPECT_EQ(units_of("{\"high_level\":\"A\"}"),
            (Units{"{\"", "high", "_level", "\":\"", "A", "\"}"}));
  EXPECT_EQ(units_of("入場無料 ½Ⅷ٣"), (Units{"入場無料", " ", "½", "Ⅷ", "٣"}));
  EXPECT_EQ(units_of("\tword\n.\r\n\nx"), (Units{"\tword", "\n", ".\r\n\n", "x"}));
  EXPECT_TRUE(units_of("").empty());
}

TEST_F(TokenizerTest, CutsContractionsInAnyCase) {
  EXPECT_EQ(units_of("I'LL don't"), (Units{"I", "'LL", " don", "'t"}));
  EXPECT_EQ(units_of("we'Re 've'M"), (Units{"we", "'Re", " '", "ve", "'M"}));
  EXPECT_EQ(units_of("'dx 'rx 'l"), (Units{"'d", "x", " '", "rx", " '", "l"}));
  EXPECT_EQ(units_of("it'\u017fx"), (Units{"it", "'\u017f", "x"}));  // the long s folds to s
  EXPECT_EQ(units_of("'"), (Units{"'"}));
  EXPECT_EQ(units_of("'r"), (Units{"'r"}));
}

TEST_F(TokenizerTest, CutsWhiteSpaceBeforeTheLastOne) {
  EXPECT_EQ(units_of("a  b"), (Units{"a", " ", " b"}));
  EXPECT_EQ(units_of("a  1"), (Units{"a", " ", " ", "1"}));
  EXPECT_EQ(units_of("a   "), (Units{"a", "   "}));
  EXPECT_EQ(units_of("a  \n  b"), (Units{"a", "  \n", " ", " b"}));
  EXPECT_EQ(units_of(" \r\n \n \t"), (Units{" \r\n \n", " \t"}));
  EXPECT_EQ(units_of("a\u3000\u00a0\u0085b"), (Units{"a", "\u3000\u00a0", "\u0085b"}));
  EXPECT_EQ(units_of("\u200b\u180e "), (Units{"\u200b\u180e", " "}));  // these two are no space
}

TEST_F(TokenizerTest, WhiteSpaceIsThePropertyOfUnicode) {
  size_t spaces = 0;
  for (char32_t point = 0; point < 0x110000; ++point) {
    spaces += tokenizer::class_of(point) == CharClass::space ? 1 : 0;
  }
  EXPECT_EQ(spaces, 25u);
}

TEST_F(TokenizerTest, ComposesCharacters) {
  const auto composed = [](std::string_view text) {
    return tokenizer::to_nfc(tokenizer::decode_utf8(text));
  };
  EXPECT_EQ(composed("cafe\u0301"), U"caf\u00e9");
  EXPECT_EQ(composed("\u1112\u1161\u11ab"), U"\ud55c");
  EXPECT_EQ(composed("q\u0307\u0323"), U"q\u0323\u0307");  // marks are ordered
  EXPECT_EQ(composed("\u212b"), U"\u00c5");
  EXPECT_EQ(composed("\u0958"), U"\u0915\u093c");        // excluded from composition
  EXPECT_EQ(composed("\ufb01\u00bd"), U"\ufb01\u00bd");  // only a compatible spelling
  EXPECT_EQ(composed(""), U"");
}

TEST_F(TokenizerTest, ManyMarksAreOrderedInReasonableTime) {
  std::u32string marks = U"e";
  for (int i = 0; i < 200'000; ++i) marks += i % 2 == 0 ? U'\u0308' : U'\u0323';
  const std::u32string composed = tokenizer::to_nfc(marks);  // hours, if it took quadratic time
  ASSERT_EQ(composed.size(), 200'000u);
  EXPECT_EQ(composed[0], U'\u1eb9');  // e with the first dot below
  EXPECT_EQ(composed[1], U'\u0323');
  EXPECT_EQ(composed.back(), U'\u0308');
}

TEST_F(TokenizerTest, MergesByRankAndFromTheLeft) {
  const Tokenizer tokenizer = load(small_tokenizer());
  EXPECT_EQ(tokenizer.encode("ab"), Ids{256});
  EXPECT_EQ(tokenizer.encode("abc"), Ids{258});  // bc ranks before ab, then a and bc
  EXPECT_EQ(tokenizer.encode("abab"), (Ids{256, 256}));
  EXPECT_EQ(tokenizer.encode("ab c"), (Ids{256, ' ', 'c'}));  // no merge across units
  EXPECT_EQ(tokenizer.encode(" abc"), (Ids{' ', 258}));
  EXPECT_EQ(tokenizer.encode(" ad"), (Ids{259, 'd'}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST_F(TokenizerTest, OfEqualRanksTheLeftmostMergesFirst) {
  tokenizer::MergeTable table;
  ASSERT_TRUE(table.add(1, 1, 2));
  ASSERT_TRUE(table.add(2, 2, 3));
  EXPECT_FALSE(table.add(1, 1, 4));
  Ids tokens = {1, 1, 1, 1, 1};
  table.apply(tokens);
  EXPECT_EQ(tokens, (Ids{3, 1}));
}

TEST_F(TokenizerTest, AHundredThousandBytesInOneUnitTakeReasonableTime) {
  std::string text(200'000, 'a');
  for (size_t i = 1; i < text.size(); i += 2) text[i] = 'b';
  EXPECT_EQ(load(small_tokenizer()).encode(text), Ids(100'000, 256));
}

TEST_F(TokenizerTest, EncodesEveryCharacterAsItsBytes) {
  const Tokenizer tokenizer = load(small_tokenizer());
  for (const std::string_view text : {"é", "入場", "👍🏽", "\x7f\t"}) {
    EXPECT_EQ(tokenizer.encode(text), bytes_of(text)) << text;
  }
  EXPECT_EQ(tokenizer.encode(std::string_view("\0", 1)), Ids{0});
  EXPECT_EQ(tokenizer.encode("e\u0301"), bytes_of("é"));
}

TEST_F(TokenizerTest, WithoutANormalizerTextStaysAsItIs) {
  nlohmann::json json = small_tokenizer();
  json["normalizer"] = nullptr;
  EXPECT_EQ(load(json).encode("e\u0301"), bytes_of("e\u0301"));
}

TEST_F(TokenizerTest, TheLongestAddedTokenIsTakenBeforeAnythingElse) {
  const Tokenizer tokenizer = load(small_tokenizer());
  EXPECT_EQ(tokenizer.encode("a<x>b"), (Ids{'a', 302, 'b'}));
  EXPECT_EQ(tokenizer.encode("<x>y<x>"), (Ids{303, 302}));
  EXPECT_EQ(tokenizer.encode("<<x>>"), (Ids{'<', 302, '>'}));
  EXPECT_EQ(tokenizer.encode("<X> <x"), (Ids{'<', 'X', '>', ' ', '<', 'x'}));
  // The pieces at both sides are normalized for themselves: no accent moves over a token.
  EXPECT_EQ(tokenizer.encode("e<x>\u0301"), (Ids{'e', 302, 0xcc, 0x81}));
  EXPECT_EQ(tokenizer.added_token("<x>y"), 303);
  EXPECT_FALSE(tokenizer.added_token("<y>").has_value());
  EXPECT_EQ(tokenizer.largest_id(), 303);
}

TEST_F(TokenizerTest, TextThatIsNotUtf8IsRefused) {
  const Tokenizer tokenizer = load(small_tokenizer());
  EXPECT_ERROR_WITH(tokenizer.encode("ab\xff"), "not UTF-8: byte 2 (0xff)");
  EXPECT_ERROR_WITH(tokenizer.encode("<x>a\xc3"), "byte 4 (0xc3)");
  EXPECT_ERROR_WITH(tokenizer.encode("\xed\xa0\x80"), "byte 0 (0xed)");  // a surrogate
  EXPECT_ERROR_WITH(tokenizer.encode("\xc0\x80"), "byte 0 (0xc0)");      // overlong
  EXPECT_ERROR_WITH(tokenizer.encode("\xc3<x>"), "byte 0 (0xc3)");
}

TEST_F(TokenizerTest, TextOfTooManyBytesIsRefused) {
  EXPECT_ERROR_WITH(
      load(small_tokenizer()).encode(std::string(tokenizer::Tokenizer::kMaxTextBytes + 1, 'a')),
      "the text is 16777217 bytes long, above the limit of 16777216");
}

TEST_F(TokenizerTest, AByteThatTheVocabularyLacksIsRefusedWhenItComes) {
  nlohmann::json json = small_tokenizer();
  json["model"]["vocab"].erase("z");
  const Tokenizer tokenizer = load(json);
  EXPECT_EQ(tokenizer.encode("y"), Ids{'y'});
  EXPECT_ERROR_WITH(tokenizer.encode("y jazz"),
                    "test: the vocabulary has no token for the byte "
                    "0x7a, which is in \" jazz\"");
}

TEST_F(TokenizerTest, PutsTheCaptionIntoTheTemplate) {
  EXPECT_EQ(qwen3::chat_prompt("a {} cat"),
            "<|im_start|>user\na {} cat<|im_end|>\n<|im_start|>assistant\n");
  const Tokenizer tokenizer = load(small_tokenizer());
  Ids expected = {300};
  const auto append = [&](const Ids& ids) {
    expected.insert(expected.end(), ids.begin(), ids.end());
  };
  append(bytes_of("user\n"));
  append({258, 301, '\n', 300});
  append(bytes_of("assistant\n"));
  EXPECT_EQ(qwen3::encode_caption(tokenizer, "abc"), expected);
}

TEST_F(TokenizerTest, ACaptionThatBeginsWithALineEndIsCutWithTheTemplates) {
  nlohmann::json json = small_tokenizer();
  json["model"]["vocab"]["\u010a\u010a"] = 260;
  json["model"]["merges"].push_back("\u010a \u010a");
  const Ids ids = qwen3::encode_caption(load(json), "\nabc");
  EXPECT_EQ(Ids(ids.begin() + 5, ids.begin() + 7), (Ids{260, 258}));
}

TEST_F(TokenizerTest, APromptOfTooManyTokensIsRefusedWithTheirNumber) {
  const Tokenizer tokenizer = load(small_tokenizer());
  const size_t around = qwen3::encode_caption(tokenizer, "").size();
  EXPECT_EQ(encode_caption(tokenizer, std::string(qwen3::kMaxPromptTokens - around, '1')).size(),
            2048u);
  EXPECT_ERROR_WITH(
      encode_caption(tokenizer, std::string(qwen3::kMaxPromptTokens - around + 1, '1')),
      "the caption has 2049 tokens with the prompt template, at most 2048");
}

TEST_F(TokenizerTest, ATokenizerWithoutTheTemplatesTokensIsRefused) {
  nlohmann::json json = small_tokenizer();
  json["added_tokens"].erase(1);
  EXPECT_ERROR_WITH(qwen3::encode_caption(load(json), "a"), "no added token <|im_end|>");
}

TEST_F(TokenizerTest, OurOwnTokenizerKnowsTheWordsOfCaptions) {
  const Tokenizer tokenizer = Tokenizer::from_json(make_byte_tokenizer_json(), "own");
  for (const char* unit : {"compositional", "_deconstruction", "\":\"", " photograph", "user"}) {
    EXPECT_EQ(tokenizer.encode(unit).size(), 1u) << unit;
  }
  for (int byte = 0; byte < 128; ++byte) {
    const char text = static_cast<char>(byte);
    EXPECT_EQ(tokenizer.encode({&text, 1}), Ids{byte});
  }
  EXPECT_EQ(tokenizer.encode("入"), bytes_of("入"));
  EXPECT_EQ(tokenizer.added_token("<|im_end|>"), tokenizer.largest_id());
  EXPECT_EQ(tokenizer.added_token("<|endoftext|>"), tokenizer.largest_id() - 2);
  EXPECT_EQ(qwen3::encode_caption(tokenizer, "").front(), tokenizer.added_token("<|im_start|>"));
}

TEST_F(TokenizerTest, ReadsAFile) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer(folder.write("tokenizer.json", small_tokenizer().dump()));
  EXPECT_EQ(tokenizer.encode("abc"), Ids{258});
  EXPECT_ERROR_WITH(tokenizer::Tokenizer(folder.file("none.json")), "none.json");
}

TEST(Tokenizer, ABuildWithoutUnicodeTablesSaysHowToGetThem) {
  if (tokenizer::has_unicode_tables()) {
    EXPECT_NO_THROW(load(small_tokenizer()));
    return;
  }
  EXPECT_ERROR_WITH(load(small_tokenizer()), "install libutf8proc-dev and build again");
  EXPECT_ERROR_WITH(tokenizer::Tokenizer("none.json"), "install libutf8proc-dev and build again");
}

struct Vector {
  const char* caption;
  Ids ids;  // of "user\n" and the caption
};

// Computed with Qwen's vocabulary by an implementation in Python.
const Vector kVectors[] = {
    {"", {872, 198}},
    {"a cat", {872, 198, 64, 8251}},
    {"{\"high_level_description\":\"A red cube.\"}",
     {872, 198, 4913, 11892, 8274, 11448, 3252, 32, 2518, 23739, 1189, 92}},
    {"café 2026", {872, 198, 924, 58858, 220, 17, 15, 17, 21}},
    {"cafe\u0301", {872, 198, 924, 58858}},
    {"  two spaces", {872, 198, 220, 1378, 12621}},
    {"\nleading", {872, 271, 20654}},
    {"\"bbox\":[180,300,930,620]",
     {872, 198, 1, 58456, 8899, 16, 23, 15, 11, 18, 15, 15, 11, 24, 18, 15, 11, 21, 17, 15, 60}},
    {"#2F4858", {872, 198, 2, 17, 37, 19, 23, 20, 23}},
    {"入場無料", {872, 198, 17254, 74167, 91593}},
    {"I'LL don't", {872, 198, 40, 6, 4086, 1513, 944}},
};

// Whole captions, by their labels, and how many tokens they are with the template.
const std::map<std::string, size_t> kTokensOfCaptions = {{"photo", 307}, {"poster", 279}};

TEST_F(TokenizerTest, EncodesAsQwenDoes) {
  const char* path = std::getenv("OCTET_QWEN_TOKENIZER");
  if (path == nullptr) {
    GTEST_SKIP() << "OCTET_QWEN_TOKENIZER does not name Qwen's tokenizer.json";
  }
  const Tokenizer tokenizer((std::string(path)));
  for (const Vector& vector : kVectors) {
    Ids expected = vector.ids;
    expected.insert(expected.begin(), 151644);
    for (const int32_t id : {151645, 198, 151644, 77091, 198}) expected.push_back(id);
    EXPECT_EQ(qwen3::encode_caption(tokenizer, vector.caption), expected) << vector.caption;
  }
  size_t found = 0;
  for (const ValidCaption& caption : valid_captions()) {
    const auto tokens = kTokensOfCaptions.find(caption.label);
    if (tokens == kTokensOfCaptions.end()) continue;
    ++found;
    EXPECT_EQ(qwen3::encode_caption(tokenizer, caption.text).size(), tokens->second)
        << caption.label;
  }
  EXPECT_EQ(found, kTokensOfCaptions.size());
}

}  // namespace
}  // namespace octet::test
