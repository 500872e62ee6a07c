#include "formats/json_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/error_message.h"

using namespace octet;        // NOLINT: tests
using namespace octet::test;  // NOLINT: tests

namespace {

using nlohmann::json;

// All of a text through the stream.
json streamed_value(JsonStream& stream) {
  switch (stream.kind()) {
    case JsonStream::Kind::object: {
      json object = json::object();
      for (stream.begin_object(); const auto key = stream.next_key();) {
        const std::string name(*key);
        object[name] = streamed_value(stream);
      }
      return object;
    }
    case JsonStream::Kind::array: {
      json array = json::array();
      for (stream.begin_array(); stream.next_element();) array.push_back(streamed_value(stream));
      return array;
    }
    case JsonStream::Kind::string: return std::string(stream.text());
    case JsonStream::Kind::number: return stream.number();
    default: {
      const std::string word(stream.text());
      return word == "null" ? json() : json(word == "true");
    }
  }
}

json streamed(std::string_view text) {
  ByteStream bytes(text, "test");
  JsonStream stream(bytes);
  json value = streamed_value(stream);
  stream.expect_end();
  return value;
}

void skipped(std::string_view text) {
  ByteStream bytes(text, "test");
  JsonStream stream(bytes);
  stream.skip();
  stream.expect_end();
}

std::string streamed_text(std::string_view text) {
  ByteStream bytes(text, "test");
  return std::string(JsonStream(bytes).text());
}

double streamed_number(std::string_view text) {
  ByteStream bytes(text, "test");
  return JsonStream(bytes).number();
}

std::string deep(int levels) {
  return std::string(static_cast<size_t>(levels), '[') +
         std::string(static_cast<size_t>(levels), ']');
}

}  // namespace

TEST(JsonStream, ReadsWhatNlohmannReads) {
  const std::string text =
      R"( {"a": [1, -2.5, 1e3, [], {}], "b\n\"": {"c": null, "d": [true,false]},
    "": "\u00e9\ud83d\ude00\/\\", "e" : "plain é" , "f":[[[0]]]} )";
  EXPECT_EQ(streamed(text), json::parse(text));
}

// Every token crosses the end of a buffer somewhere.
TEST(JsonStream, BuffersEndAnywhere) {
  const std::string event = R"({"name":"a\"b\\c","long":123456.75,"list":[1,2,{"x":null}]},)";
  const json want = json::parse("[" + event + event + "0]");
  for (size_t i = 0; i <= event.size(); ++i) {
    const size_t blanks = 256 * 1024 - 1 - event.size() + i;
    const std::string text = "[" + std::string(blanks, ' ') + event + event + "0]";
    ASSERT_EQ(streamed(text), want) << i;
    ASSERT_NO_THROW(skipped(text)) << i;
  }
}

TEST(JsonStream, TakesNumbersAsProfilersWriteThem) {
  EXPECT_EQ(streamed_number("12.5"), 12.5);
  EXPECT_EQ(streamed_number("\"12.5\""), 12.5);
  EXPECT_EQ(streamed_number("1e999"), INFINITY);
  EXPECT_EQ(streamed_number("-1e999"), -INFINITY);
  EXPECT_EQ(streamed_number("1e-999"), 0);
  for (const char* text : {"NaN", "nan", "null", "true", "\"x\"", "\"\"", "{}", "[1]", "1.2.3"}) {
    EXPECT_TRUE(std::isnan(streamed_number(text))) << text;
  }
  ByteStream bytes("[7, \"8\", 9.0, 1e30, \"x\", -3]", "test");
  JsonStream stream(bytes);
  std::vector<std::optional<int64_t>> values;
  for (stream.begin_array(); stream.next_element();) values.push_back(stream.integer());
  EXPECT_EQ(values, (std::vector<std::optional<int64_t>>{7, 8, 9, {}, {}, -3}));
}

TEST(JsonStream, TextIsAlwaysUtf8) {
  EXPECT_EQ(streamed_text("\"a\xff\""), "a\uFFFD");
  EXPECT_EQ(streamed_text("\"\\n\xc3\""), "\n\uFFFD");
  EXPECT_EQ(streamed_text(R"("\ud83d")"), "\uFFFD");
  EXPECT_EQ(streamed_text(R"("\ud83dx")"), "\uFFFDx");
  EXPECT_EQ(streamed_text(R"("\ud83d\n")"), "\uFFFD\n");
  EXPECT_EQ(streamed_text(R"("\ud83d\u0041")"), "\uFFFDA");
  EXPECT_EQ(streamed_text(R"("\udc00")"), "\uFFFD");
  EXPECT_EQ(streamed_text(R"("\uZZ")"), "\uFFFDZZ");
  EXPECT_EQ(streamed_text(R"("\u20ac\u00e9")"), "€é");
  EXPECT_EQ(streamed_text(R"("C:\Users")"), "C:\\Users");
  EXPECT_EQ(streamed_text("\"tab\tand\nline\""), "tab\tand\nline");
}

TEST(JsonStream, LongStringsAreCut) {
  for (const std::string part : {"x", "\\n", "é"}) {
    std::string text = "\"";
    while (text.size() < 1'000'000) text += part;
    const std::string got = streamed_text(text + "\"");
    EXPECT_GE(got.size(), JsonStream::kMaxString) << part;
    EXPECT_LE(got.size(), JsonStream::kMaxString + 6) << part;
  }
}

TEST(JsonStream, LeavesAnObjectInTheMiddle) {
  ByteStream bytes(R"([{"a":1,"b":{"c":[2,"}"]},"d":3},{"a":4}])", "test");
  JsonStream stream(bytes);
  std::vector<double> values;
  for (stream.begin_array(); stream.next_element();) {
    stream.begin_object();
    EXPECT_EQ(stream.next_key(), "a");
    values.push_back(stream.number());
    stream.leave_object();
  }
  stream.expect_end();
  EXPECT_EQ(values, (std::vector<double>{1, 4}));
}

TEST(JsonStream, TellsWhereATextIsCutOff) {
  const std::string text = R"({"a": [1, "x\n", {"b": true}]})";
  for (size_t length = 0; length < text.size(); ++length) {
    const std::string part = text.substr(0, length);
    const std::string want = "test: is cut off at byte " + std::to_string(length);
    EXPECT_ERROR_WITH(streamed(part), want);
    EXPECT_ERROR_WITH(skipped(part), want);
  }
}

TEST(JsonStream, RefusesWhatIsNoJson) {
  EXPECT_ERROR_WITH(streamed("[1 2]"), "invalid JSON at byte 3: expected a comma");
  EXPECT_ERROR_WITH(streamed("[1,]"), "expected a value behind a comma");
  EXPECT_ERROR_WITH(streamed(R"({"a":1,})"), "expected a key in quotes");
  EXPECT_ERROR_WITH(streamed(R"({"a" 1})"), "expected a colon");
  EXPECT_ERROR_WITH(streamed("{a:1}"), "expected a key in quotes");
  EXPECT_ERROR_WITH(streamed("[:]"), "expected a value");
  EXPECT_ERROR_WITH(streamed("[1] 2"), "more text behind the end");
  EXPECT_ERROR_WITH(skipped("[{]}"), "brackets do not match");
  EXPECT_ERROR_WITH(streamed("[" + std::string(1000, '1') + "]"), "a number of more than");
}

TEST(JsonStream, NestingHasALimit) {
  EXPECT_NO_THROW(streamed(deep(JsonStream::kMaxDepth)));
  EXPECT_NO_THROW(skipped(deep(JsonStream::kMaxDepth)));
  EXPECT_ERROR_WITH(streamed(deep(JsonStream::kMaxDepth + 1)), "more than 64 deep");
  EXPECT_ERROR_WITH(skipped(deep(JsonStream::kMaxDepth + 1)), "more than 64 deep");
  EXPECT_ERROR_WITH(skipped(std::string(1'000'000, '[')), "more than 64 deep");
}
