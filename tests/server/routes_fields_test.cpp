#include <gtest/gtest.h>

#include "octet/picture_files.h"
#include "server/routes/base64.h"
#include "server/routes/fields.h"
#include "server/routes/job_fields.h"

namespace octet::server {
namespace {

// What a reader of fields refuses; a failure with status 0 if it refuses nothing.
template <class Read>
Failure refusal_of(const std::string& text, Read read) {
  try {
    const Json json = parse_json(text, "the body");
    Fields fields(json);
    read(fields);
  } catch (const Refused& refused) {
    return refused.failure;
  }
  return {.status = 0};
}

JobSpec picture_of(const std::string& text) {
  const Json json = parse_json(text, "the body");
  Fields fields(json);
  JobSpec spec;
  read_picture_fields(fields, {}, spec);
  return spec;
}

Failure picture_refusal(const std::string& text) {
  return refusal_of(text, [](Fields& fields) {
    JobSpec spec;
    read_picture_fields(fields, {}, spec);
  });
}

Failure caption_refusal(const std::string& text) {
  return refusal_of(text, [](Fields& fields) {
    JobSpec spec;
    read_caption_fields(fields, {}, /*recognize=*/false, spec);
  });
}

TEST(ParseJson, NamesTheByteThatIsWrong) {
  const Failure failure = refusal_of("{\"a\": 1,}", [](Fields&) {});
  EXPECT_EQ(failure.status, 400);
  EXPECT_EQ(failure.message, "the body is not JSON: byte 9 does not continue what is before it");
}

TEST(ParseJson, RefusesWhatIsNestedTooDeeplyAndNumbersBeyondDouble) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_NE(refusal_of(deep, [](Fields&) {}).message.find("nested"), std::string::npos);
  EXPECT_EQ(refusal_of("{\"a\": 1e999}", [](Fields&) {}).status, 400);
  const std::string allowed = std::string(60, '[') + std::string(60, ']');
  EXPECT_EQ(refusal_of("{\"a\": " + allowed + "}", [](Fields&) {}).status, 0);
}

TEST(Fields, TakeAnObjectOnly) {
  EXPECT_EQ(refusal_of("[]", [](Fields&) {}).message, "the body is a list, expected an object");
}

TEST(Fields, ReadNumbersWithinTheirBounds) {
  const auto steps = [](Fields& fields) { fields.integer("steps", 1, 100); };
  for (const char* right : {"{\"steps\": 1}", "{\"steps\": 4.0}", "{\"steps\": null}", "{}"}) {
    EXPECT_EQ(refusal_of(right, steps).status, 0) << right;
  }
  for (const char* wrong : {"0", "101", "4.5", "true", "\"4\"", "[4]", "1e30", "-1"}) {
    const Failure failure = refusal_of("{\"steps\": " + std::string(wrong) + "}", steps);
    EXPECT_EQ(failure.status, 400) << wrong;
    EXPECT_EQ(failure.param, "steps") << wrong;
  }
  EXPECT_EQ(refusal_of("{\"steps\": 0}", steps).message,
            "`steps` is 0, expected an integer from 1 to 100");
}

TEST(Fields, ReadAllSeeds) {
  EXPECT_EQ(picture_of("{\"seed\": 18446744073709551615}").picture.seed, UINT64_MAX);
  EXPECT_EQ(picture_refusal("{\"seed\": -1}").param, "seed");
  EXPECT_EQ(picture_refusal("{\"seed\": 1.5}").param, "seed");
}

TEST(Fields, NameAFieldThatNobodyKnows) {
  const Failure failure = refusal_of("{\"steps\": 3, \"stesp\": 3}", [](Fields& fields) {
    fields.integer("steps", 1, 100);
    fields.refuse_unknown();
  });
  EXPECT_EQ(failure.param, "stesp");
  EXPECT_EQ(failure.code, "unknown_field");
  EXPECT_EQ(failure.message, "`stesp` is not a field of this request, expected some of steps");
}

TEST(Fields, NameAFieldOnOneLine) {
  const Failure failure =
      refusal_of(R"({"a\nb": 1})", [](const Fields& fields) { fields.refuse_unknown(); });
  EXPECT_EQ(failure.param, "a field with a strange name");
  EXPECT_EQ(failure.message.find('\n'), failure.message.npos);
}

TEST(Fields, ListTheWordsOfAChoice) {
  const Failure failure = picture_refusal("{\"output_format\": \"gif\"}");
  EXPECT_EQ(failure.message, "`output_format` is \"gif\", expected one of png, jpeg, webp");
}

TEST(Fields, DoNotRepeatLongTexts) {
  const Failure failure =
      picture_refusal("{\"output_format\": \"" + std::string(5000, 'x') + "\"}");
  EXPECT_LT(failure.message.size(), 200u);
}

TEST(PictureFields, HaveDefaults) {
  const JobSpec spec = picture_of("{}");
  EXPECT_EQ(spec.picture.size, PictureSize{});
  EXPECT_EQ(spec.picture.images, 1);
  EXPECT_EQ(spec.format, PictureFormat::png);
  EXPECT_EQ(spec.priority, Priority::normal);
  EXPECT_LT(spec.picture.seed, uint64_t{1} << 32);
}

TEST(PictureFields, ReadASizeAsOpenAIWritesIt) {
  EXPECT_EQ(picture_of("{\"size\": \"1024x768\"}").picture.size, (PictureSize{1024, 768}));
  EXPECT_EQ(picture_of("{\"size\": \"auto\"}").picture.size, PictureSize{});
  for (const char* wrong : {"1024", "x", "1024x", "-1x5", "1024x1024x3", "99999999999x1"}) {
    const Failure failure = picture_refusal("{\"size\": \"" + std::string(wrong) + "\"}");
    EXPECT_EQ(failure.param, "size") << wrong;
  }
}

TEST(PictureFields, ReadOneGuidanceOrAListOfThem) {
  EXPECT_EQ(picture_of("{\"guidance\": 2.5}").picture.guidance, std::vector<float>{2.5F});
  EXPECT_EQ(picture_of("{\"guidance\": [1, 2]}").picture.guidance, (std::vector<float>{1, 2}));
  for (const char* wrong : {"[]", "\"2\"", "[true]", "-1", "[[1]]"}) {
    const Failure failure = picture_refusal("{\"guidance\": " + std::string(wrong) + "}");
    EXPECT_EQ(failure.param, "guidance") << wrong;
  }
}

TEST(PictureFields, NameAFieldWithinAList) {
  const JobSpec spec = picture_of("{\"lora\": [{\"name\": \"style\", \"strength\": 0.5}]}");
  EXPECT_EQ(spec.loras, std::vector<std::string>{"style:0.5"});
  EXPECT_EQ(picture_refusal("{\"lora\": [{\"name\": 3}]}").param, "lora[0].name");
  EXPECT_EQ(picture_refusal("{\"lora\": [{\"file\": \"/etc/passwd\"}]}").param, "lora[0].file");
  EXPECT_EQ(picture_refusal("{\"lora\": [\"style\"]}").param, "lora[0]");
}

TEST(CaptionFields, AreExactlyOne) {
  EXPECT_EQ(caption_refusal("{\"prompt\": \"a\"}").status, 0);
  EXPECT_EQ(caption_refusal("{\"json_prompt\": {}}").status, 0);
  EXPECT_EQ(caption_refusal("{\"prompt\": \"a\", \"json_prompt\": {}}").param, "json_prompt");
  EXPECT_EQ(caption_refusal("{}").param, "prompt");
  EXPECT_EQ(caption_refusal("{\"prompt\": \"  \"}").param, "prompt");
  EXPECT_EQ(caption_refusal("{\"json_prompt\": 3}").param, "json_prompt");
}

TEST(CaptionFields, KeepTheOrderOfTheCaption) {
  const Json json = parse_json("{\"json_prompt\": {\"b\": 1, \"a\": 2}}", "the body");
  Fields fields(json);
  JobSpec spec;
  read_caption_fields(fields, {}, /*recognize=*/false, spec);
  EXPECT_EQ(spec.picture.caption, "{\"b\":1,\"a\":2}");
}

TEST(CaptionFields, RecognizeACaptionWhereOnlyAPromptIsKnown) {
  EXPECT_TRUE(is_json_object(" {\"a\": 1} "));
  for (const char* no : {"", "a fox", "[1]", "{curly} words", "\"{}\""}) {
    EXPECT_FALSE(is_json_object(no)) << no;
  }
}

TEST(Base64, MatchesTheExamplesOfItsStandard) {
  const std::pair<const char*, const char*> pairs[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, HoldsAllBytesAndRefusesOtherDigits) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  for (const char* wrong : {"Zg", "Z===", "Zm9*", "Zg==Zg=="}) {
    EXPECT_EQ(from_base64(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace octet::server
