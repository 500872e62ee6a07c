#include "models/ideogram4/caption.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "formats/error_message.h"
#include "formats/json.h"
#include "models/sample_captions.h"

namespace octet::test {
namespace {

using ideogram4::caption_for_model;
using ideogram4::check_caption;
using ideogram4::kMaxCaptionBytes;
using ideogram4::wrap_plain_text;

bool is_error(const CaptionFinding& finding) {
  return finding.severity == CaptionFinding::Severity::error;
}

std::string listed(const CaptionReport& report) {
  std::string text;
  for (const CaptionFinding& finding : report.findings) {
    text +=
        fmt::format("{}{}: {}\n", is_error(finding) ? "" : "warning ", finding.path, finding.rule);
  }
  return text;
}

TEST(Caption, AValidCanonicalCaptionKeepsEveryByte) {
  for (const ValidCaption& caption : valid_captions()) {
    const CaptionReport report = check_caption(caption.text);
    EXPECT_TRUE(report.valid()) << caption.label << "\n" << listed(report);
    EXPECT_EQ(report.canonical, caption.text) << caption.label;
    EXPECT_EQ(caption_for_model(caption.text, "test"), caption.text) << caption.label;
  }
}

TEST(Caption, TheDocumentedExamplesHaveNoFindings) {
  const auto captions = valid_captions();
  EXPECT_EQ(listed(check_caption(captions[0].text)), "");
  EXPECT_EQ(listed(check_caption(captions[1].text)), "");
}

TEST(Caption, EveryFaultIsFoundWhereItIs) {
  for (const FaultyCaption& caption : faulty_captions()) {
    const CaptionReport report = check_caption(caption.text);
    const auto first = std::find_if(report.findings.begin(), report.findings.end(), is_error);
    ASSERT_NE(first, report.findings.end()) << caption.label;
    EXPECT_FALSE(report.valid()) << caption.label;
    EXPECT_EQ(first->path, caption.path) << caption.label << "\n" << listed(report);
    EXPECT_TRUE(contains(first->rule, caption.rule)) << caption.label << "\n" << listed(report);
    EXPECT_EQ(!report.canonical.empty(), caption.fixable) << caption.label;
    EXPECT_ERROR_WITH(caption_for_model(caption.text, "f.json"), "f.json: " + caption.path + ": ");
    if (!caption.fixable) continue;
    EXPECT_TRUE(first->fixable) << caption.label;
    const CaptionReport mended = check_caption(report.canonical);
    EXPECT_TRUE(mended.valid()) << caption.label << "\n" << listed(mended);
    EXPECT_EQ(mended.canonical, report.canonical) << caption.label;
  }
}

TEST(Caption, MendingSortsAndKeepsTheMeaning) {
  const std::string text = R"({
    "compositional_deconstruction": {
      "elements": [{"color_palette": ["#ab12ef"], "desc": "caf\u00e9", "type": "text",
                    "text": "A\/B", "bbox": [ -0, 2,3 , 4 ]}],
      "background": "b"
    },
    "style_description": {"medium": "m", "photo": "p", "lighting": "l", "aesthetics": "a"},
    "aspect_ratio": "16:9",
    "high_level_description": "h"
  })";
  EXPECT_FALSE(check_caption(text).valid());
  EXPECT_EQ(check_caption(text).canonical,
            R"({"high_level_description":"h","style_description":{"aesthetics":"a","lighting":"l",)"
            R"("photo":"p","medium":"m"},"compositional_deconstruction":{"background":"b",)"
            R"("elements":[{"type":"text","bbox":[0,2,3,4],"text":"A/B","desc":"café",)"
            R"("color_palette":["#AB12EF"]}]}})");
}

TEST(Caption, PrettyPrintedCaptionsAreValidAndBecomeCompact) {
  for (const ValidCaption& caption : valid_captions()) {
    const auto value = nlohmann::ordered_json::parse(caption.text);
    const std::string pretty = "\xef\xbb\xbf" + value.dump(2) + "\n";
    EXPECT_EQ(caption_for_model(pretty, "test"), caption.text) << caption.label;
  }
}

TEST(Caption, TheOrderOfTheRootIsNotChecked) {
  const std::string text = R"({"compositional_deconstruction":{"background":"b","elements":[]},)"
                           R"("high_level_description":"h"})";
  EXPECT_EQ(listed(check_caption(text)), "");
  EXPECT_EQ(check_caption(text).canonical,
            R"({"high_level_description":"h",)"
            R"("compositional_deconstruction":{"background":"b","elements":[]}})");
}

TEST(Caption, EscapesBesideLiteralCharactersAreValid) {
  const std::string text = with_elements(R"({"type":"obj","desc":"\u00e9 é"})");
  EXPECT_EQ(listed(check_caption(text)), "");
  EXPECT_EQ(check_caption(text).canonical, with_elements(R"({"type":"obj","desc":"é é"})"));
}

TEST(Caption, WhatTheOfficialVerifierAcceptsIsAWarning) {
  const CaptionReport style = check_caption(
      with_style(R"({"aesthetics":1,"lighting":null,"photo":[],"medium":{"a":true}})"));
  EXPECT_TRUE(style.valid());
  EXPECT_FALSE(style.canonical.empty());
  EXPECT_EQ(listed(style),
            "warning $.style_description.aesthetics: expected a string, got 1\n"
            "warning $.style_description.lighting: expected a string, got null\n"
            "warning $.style_description.photo: expected a string, got an array of 0\n"
            "warning $.style_description.medium: expected a string, got an object\n");
  const CaptionReport elements = check_caption(
      with_elements(R"({"type":"obj","desc":"d"},{"type":"text","text":12,"desc":false})"));
  EXPECT_TRUE(elements.valid());
  EXPECT_EQ(listed(elements),
            "warning $.compositional_deconstruction.elements[1].text: expected a string, got 12\n"
            "warning $.compositional_deconstruction.elements[1].desc: expected a string, "
            "got false\n");
  EXPECT_TRUE(contains(listed(check_caption(valid_captions()[2].text)),
                       "warning $.high_level_description: is missing"));
}

TEST(Caption, AllFaultsAreListedInOrder) {
  const CaptionReport report = check_caption(
      R"({"x":1,"high_level_description":2,"style_description":3,"compositional_deconstruction":)"
      R"({"background":"","elements":[4,{"type":"obj","bbox":[5,6,-7,1008],"desc":""}]}})");
  EXPECT_EQ(listed(report),
            "warning $: unknown key \"x\", expected only high_level_description, "
            "style_description, compositional_deconstruction\n"
            "$.high_level_description: expected a string, got 2\n"
            "$.style_description: expected an object, got 3\n"
            "$.compositional_deconstruction.elements[0]: expected an object, got 4\n"
            "$.compositional_deconstruction.elements[1].bbox[2]: expected a coordinate from 0 to "
            "1000, got -7\n"
            "$.compositional_deconstruction.elements[1].bbox[3]: expected a coordinate from 0 to "
            "1000, got 1008\n"
            "$.compositional_deconstruction.elements[1].bbox: y_min is 5, above y_max, -7; the "
            "order is [y_min, x_min, y_max, x_max]\n");
}

TEST(Caption, WhoeverRunsACaptionGetsAllItsErrors) {
  EXPECT_ERROR_WITH(caption_for_model("{}", "a.json"),
                    "a.json: $.compositional_deconstruction: is missing, expected an object of "
                    "background and elements; `any_caption` runs it anyway");
  EXPECT_ERROR_WITH(caption_for_model(with_elements("1,2"), "a.json"),
                    "a.json: $.compositional_deconstruction.elements[0]: expected an object, got "
                    "1; $.compositional_deconstruction.elements[1]: expected an object, got 2; ");
  EXPECT_ERROR_WITH(caption_for_model(with_elements(R"({"desc":"d","type":"obj"})"), "a.json"),
                    "; `octet caption check --fix` repairs it");
  std::string many = "0";
  for (int i = 1; i < 25; ++i) many += fmt::format(",{}", i);
  EXPECT_ERROR_WITH(caption_for_model(with_elements(many), "a.json"),
                    "got 19; and 5 more, which `octet caption check` lists");
}

TEST(Caption, ChecksGoOnWhereTheOfficialVerifierStops) {
  EXPECT_EQ(listed(check_caption(R"({"high_level_description":"h","style_description":)"
                                 R"({"aesthetics":1,"color_palette":[0]},)"
                                 R"("compositional_deconstruction":)"
                                 R"({"elements":[{"bbox":[1],"color_palette":["red"]}]}})")),
            "$.style_description: expected exactly one of photo and art_style, got neither\n"
            "$.style_description: lighting, medium are missing, expected aesthetics, lighting, "
            "medium, color_palette\n"
            "warning $.style_description.aesthetics: expected a string, got 1\n"
            "$.style_description.color_palette[0]: expected a color such as \"#1A2B3C\" with "
            "upper-case digits, got 0\n"
            "$.compositional_deconstruction.background: is missing, expected a string\n"
            "$.compositional_deconstruction.elements[0].type: is missing, expected \"obj\" or "
            "\"text\"\n"
            "$.compositional_deconstruction.elements[0]: desc is missing, expected type, desc\n"
            "$.compositional_deconstruction.elements[0].bbox: expected an array of 4 integers, "
            "[y_min, x_min, y_max, x_max], got an array of 1\n"
            "$.compositional_deconstruction.elements[0].color_palette[0]: expected a color such as "
            "\"#1A2B3C\" with upper-case digits, got \"red\"\n");
}

TEST(Caption, UnknownKeysAreWarningsAndStayWhereTheyAre) {
  const std::string text =
      R"({"high_level_description":"h","mood\n":"x","style_description":{"aesthetics":"a",)"
      R"("lighting":"l","medium":"m","art_style":"s","colour_palette":[]},)"
      R"("compositional_deconstruction":{"canvas":"c","background":"b","layout":"l","elements":)"
      R"([{"type":"obj","z":1,"desc":"d"}]}})";
  const CaptionReport report = check_caption(text);
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(report.canonical, text);
  EXPECT_EQ(
      listed(report),
      "warning $: unknown key \"mood\\u000a\", expected only high_level_description, "
      "style_description, compositional_deconstruction\n"
      "warning $.style_description: unknown key \"colour_palette\" (did you mean color_palette?), "
      "expected only aesthetics, lighting, photo, medium, art_style, color_palette\n"
      "warning $.compositional_deconstruction: unknown keys \"canvas\", \"layout\", expected only "
      "background, elements\n"
      "warning $.compositional_deconstruction.elements[0]: unknown key \"z\", expected only type, "
      "bbox, text, desc, color_palette\n");
}

TEST(Caption, TheAspectRatioOfExpandersIsLeftOut) {
  const CaptionReport report =
      check_caption(R"({"aspect_ratio":"1:1",)" + valid_captions()[0].text.substr(1));
  EXPECT_TRUE(report.valid());
  EXPECT_TRUE(report.findings[0].fixable);
  EXPECT_TRUE(contains(listed(report), "warning $.aspect_ratio: "));
  EXPECT_EQ(report.canonical, valid_captions()[0].text);
}

TEST(Caption, AnyCaptionIsRunWithItsErrors) {
  const auto any = [](std::string_view text) { return caption_for_model(text, "x", true); };
  for (const ValidCaption& caption : valid_captions()) EXPECT_EQ(any(caption.text), caption.text);
  // JSON becomes compact, and what can be mended is.
  EXPECT_EQ(any(R"( { "scene" : "a b" , "z" : [ 1 ] } )"), R"({"scene":"a b","z":[1]})");
  EXPECT_EQ(any(with_elements(R"({"desc":"d","type":"picture"})")),
            with_elements(R"({"type":"picture","desc":"d"})"));
  EXPECT_EQ(any("[]"), "[]");
  // The rest is text.
  EXPECT_EQ(any("\xef\xbb\xbf\n a red\n fox \n"), "a red\n fox");
  EXPECT_EQ(any(R"({"a":1,"a":2})"), R"({"a":1,"a":2})");
  // What no tokenizer takes is refused all the same.
  EXPECT_ERROR_WITH(any(""), "x: $: ");
  EXPECT_ERROR_WITH(any("\n"), "x: $: ");
  EXPECT_ERROR_WITH(any("\xff"), "UTF-8");
  EXPECT_ERROR_WITH(any(std::string("a\0b", 3)), "NUL");
  EXPECT_ERROR_WITH(any(std::string(kMaxCaptionBytes + 1, 'x')), "above the limit");
}

TEST(Caption, ControlTokensAreWarnedOf) {
  const std::string text =
      with_elements(R"({"type":"text","text":"<|im_end|>\n","desc":"\u003cthink> <|im_start |>"})");
  const CaptionReport report = check_caption(text);
  EXPECT_TRUE(report.valid());
  EXPECT_EQ(listed(report),
            "warning $.compositional_deconstruction.elements[0].text: the tokenizer reads "
            "<|im_end|> as a control token, not as text\n"
            "warning $.compositional_deconstruction.elements[0].desc: the tokenizer reads <think> "
            "as a control token, not as text\n");
  // In keys, in values that belong nowhere, and in text that is no JSON.
  EXPECT_TRUE(contains(listed(check_caption(R"({"<|endoftext|>":{"a":["<|box_end|>"]}})")),
                       "warning $: the tokenizer reads <|endoftext|> as"));
  EXPECT_TRUE(contains(listed(check_caption(R"({"<|endoftext|>":{"a":["<|box_end|>"]}})")),
                       "warning $[0]: the tokenizer reads <|box_end|> as"));
  EXPECT_TRUE(contains(listed(check_caption("fox <|im_end|>")), "warning $: the tokenizer reads"));
}

// Those of the caption that stable-diffusion.cpp's documentation shows for this model: extra keys
// in the deconstruction, and elements of type text without one.
TEST(Caption, TheFormsOfOtherProgramsCanBeRun) {
  const std::string text =
      R"({"high_level_description":"A cover.","compositional_deconstruction":{"canvas":"Square.",)"
      R"("background":"Ivory.","layout":"Centred.","elements":[{"type":"text","desc":"A headline )"
      R"(reading LOOK."},{"type":"obj","desc":"A cat."}]}})";
  EXPECT_EQ(listed(check_caption(text)),
            "warning $.compositional_deconstruction: unknown keys \"canvas\", \"layout\", expected "
            "only background, elements\n"
            "$.compositional_deconstruction.elements[0]: text is missing, expected type, bbox, "
            "text, desc, color_palette\n");
  // Warnings, too, so that one correction is enough.
  EXPECT_ERROR_WITH(caption_for_model(text, "c.json"),
                    "`any_caption` runs it anyway; also, as warnings: "
                    "$.compositional_deconstruction: unknown keys \"canvas\"");
  EXPECT_EQ(caption_for_model(text, "c.json", true), text);
}

TEST(Caption, ManyUnknownKeysAreCounted) {
  std::string text = "{\"" + std::string(1000, 'k') + "\":0";
  for (int i = 0; i < 5000; ++i) text += fmt::format(",\"{}\":0", i);
  const CaptionReport report = check_caption(text + "}");
  EXPECT_TRUE(contains(report.findings[0].rule, R"(, "5", "6", 4993 more, expected only)"));
  EXPECT_LT(report.findings[0].rule.text().size(), 500u);
}

TEST(Caption, LengthIsLimited) {
  const auto of_length = [](size_t bytes) {
    const size_t frame = with_elements(R"({"type":"obj","desc":""})").size();
    return with_elements(R"({"type":"obj","desc":")" + std::string(bytes - frame, 'x') + "\"}");
  };
  EXPECT_TRUE(check_caption(of_length(kMaxCaptionBytes)).valid());
  const CaptionReport report = check_caption(of_length(kMaxCaptionBytes + 1));
  EXPECT_EQ(listed(report), "$: the caption is 65537 bytes long, above the limit of 65536\n");

  // 1E9 takes two bytes more when it is written again.
  std::string numbers = R"({"aesthetics":"a","lighting":"l","medium":"m","art_style":[1E9)";
  while (numbers.size() < 60'000) numbers += ",1E9";
  const CaptionReport grown = check_caption(with_style(numbers + "]}"));
  EXPECT_TRUE(contains(listed(grown), "above the limit")) << grown.findings.size();
  EXPECT_TRUE(grown.canonical.empty());
}

TEST(Caption, WrapsPlainText) {
  const std::string wrapped = wrap_plain_text("\n A \"red\" fox,\nwhere it snows: 雪 \t\n");
  EXPECT_EQ(wrapped, R"({"high_level_description":"A \"red\" fox,\nwhere it snows: 雪",)"
                     R"("compositional_deconstruction":)"
                     R"({"background":"A \"red\" fox,\nwhere it snows: 雪","elements":[]}})");
  EXPECT_EQ(listed(check_caption(wrapped)), "");
  EXPECT_EQ(caption_for_model(wrapped, "test"), wrapped);
}

TEST(Caption, RefusesToWrapWhatIsNoPlainText) {
  EXPECT_ERROR_WITH(wrap_plain_text(""), "is empty");
  EXPECT_ERROR_WITH(wrap_plain_text(" \n\t"), "is empty");
  EXPECT_ERROR_WITH(wrap_plain_text(valid_captions()[0].text), "begins with '{'");
  EXPECT_ERROR_WITH(wrap_plain_text("\xff"), "not UTF-8");
  EXPECT_ERROR_WITH(wrap_plain_text(std::string("a\0b", 3)), "NUL");
  EXPECT_ERROR_WITH(wrap_plain_text(std::string(kMaxCaptionBytes + 1, 'a')), "above the limit");
  EXPECT_ERROR_WITH(wrap_plain_text(std::string(kMaxCaptionBytes / 2, 'a')), "wrapped");
}

}  // namespace
}  // namespace octet::test
