#include "formats/json.h"

#include <gtest/gtest.h>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "formats/text.h"

namespace octet::test {
namespace {

TEST(Json, ReadsEveryKindOfValue) {
  const auto value =
      parse_json(R"({"null":null,"yes":true,"int":-3,"big":18446744073709551615,"float":0.5,)"
                 R"("text":"\u00e9\n","list":[1,[2],{}],"empty":{}})",
                 "test");
  EXPECT_TRUE(value["null"].is_null());
  EXPECT_EQ(value["yes"], true);
  EXPECT_EQ(value["int"], -3);
  EXPECT_EQ(value["big"].get<uint64_t>(), 18446744073709551615u);
  EXPECT_EQ(value["float"], 0.5);
  EXPECT_EQ(value["text"], "é\n");
  EXPECT_EQ(value["list"].dump(), "[1,[2],{}]");
  EXPECT_EQ(value["empty"], nlohmann::json::object());
  EXPECT_EQ(parse_json(" 7 ", "test"), 7);
  EXPECT_EQ(parse_json("\xef\xbb\xbf[]", "test"), nlohmann::json::array());
}

TEST(Json, NestsAsDeepAsTheLimitAndNoDeeper) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(kMaxJsonDepth), "test"));
  EXPECT_ERROR_WITH(parse_json(nested(kMaxJsonDepth + 1), "test"), "byte 65");
}

TEST(Json, ErrorsNameTheSourceTheByteAndThePlace) {
  EXPECT_ERROR_WITH(parse_json("[1,]", "list.json"), "list.json: invalid JSON at byte 4");
  EXPECT_ERROR_WITH(parse_json(R"({"a":{"b":1,"b":2}})", "x"), "byte 15");
  EXPECT_ERROR_WITH(parse_json(R"({"a":{"b":1,"b":2}})", "x"), R"("a" > "b" appears twice)");
  EXPECT_ERROR_WITH(parse_json("{\"a\":\"" + std::string(100'000, 'x'), "x"), "...");
}

TEST(Json, OrderedValuesKeepTheirOrderAndEveryRule) {
  const std::string text = R"({"b":{"z":1,"a":[{"y":2,"x":3}]},"a":null})";
  EXPECT_EQ(parse_ordered_json(text, "test").dump(), text);
  EXPECT_EQ(parse_json(text, "test").dump(), R"({"a":null,"b":{"a":[{"x":3,"y":2}],"z":1}})");
  EXPECT_ERROR_WITH(parse_ordered_json(R"({"a":{"b":1,"c":2,"b":3}})", "x"),
                    R"("a" > "b" appears twice)");
  EXPECT_ERROR_WITH(parse_ordered_json("[1,]", "x"), "x: invalid JSON at byte 4");
  EXPECT_ERROR_WITH(parse_ordered_json(std::string(kMaxJsonDepth + 1, '['), "x"), "byte 65");
  const std::string longest = "\"" + std::string(kMaxOrderedJsonBytes - 2, 'x') + "\"";
  EXPECT_NO_THROW(parse_ordered_json(longest, "x"));
  EXPECT_ERROR_WITH(parse_ordered_json(longest + " ", "x"), "65537 bytes long");
  EXPECT_EQ(describe(parse_ordered_json("[1,2]", "x")), "an array of 2");
}

TEST(Json, EqualKeysOfDifferentObjectsAreFine) {
  EXPECT_NO_THROW(parse_json(R"([{"a":1},{"a":{"a":2}}])", "test"));
}

TEST(Json, ReadsFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_json_file(folder.write("a.json", "[1]\n")).dump(), "[1]");
  const std::string broken = folder.write("b.json", "[1\n");
  EXPECT_ERROR_WITH(read_json_file(broken), broken);
  EXPECT_ERROR_WITH(read_json_file(folder.file("absent.json")), "absent.json");
}

TEST(Text, DecidesWhatIsUtf8) {
  for (const char* good : {"", "a", "é", "€", "😀", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(Text, QuotedTextStaysOnOneHarmlessLine) {
  EXPECT_EQ(in_quotes("layer.0"), R"("layer.0")");
  EXPECT_EQ(in_quotes("a\n\x1b[2J\"b\\"), R"("a\u000a\u001b[2J\"b\\")");
  EXPECT_EQ(in_quotes("\xff\xc2\x85\xe2\x80\xaeé"), R"("\xff\u0085\u202eé")");
  EXPECT_EQ(in_quotes("\u061c\u200e\u200f\u200b"), "\"\\u061c\\u200e\\u200f\u200b\"");
  EXPECT_EQ(in_quotes(std::string(500, 'x')).size(), 205u);
}

}  // namespace
}  // namespace octet::test
