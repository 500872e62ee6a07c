// Fields of requests in sentences: those of format strings and of Sentences, never users' data.
#include "octet/sentence.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/escaped_text.h"
#include "base/invalid_request.h"
#include "base/log.h"

namespace octet {
namespace {

// "<size> is 3": fields between angle brackets.
std::string shown(const Sentence& sentence) {
  return sentence.said([](const std::string& field) { return "<" + field + ">"; });
}

TEST(Sentence, HasTheFieldsOfItsFormat) {
  const Sentence made = sentence("`size` is {}, `{}` is {}", 3, "max_memory", 4);
  EXPECT_EQ(made.text(), "`size` is 3, `max_memory` is 4");
  EXPECT_EQ(shown(made), "<size> is 3, <max_memory> is 4");
}

TEST(Sentence, HasNoFieldsInOtherBackquotes) {
  for (const char* text : {"use `octet caption check`", "a ` alone", "``", "`A`", "a `b c` d` e"}) {
    EXPECT_EQ(shown(sentence("{}", text)), text);
    EXPECT_EQ(shown(make_sentence(text, {})), text);
  }
  EXPECT_EQ(shown(make_sentence("`b c`size`", {})), "`b c<size>");
}

TEST(Sentence, TakesNoFieldFromItsArguments) {
  for (const std::string name : {"a `device` b", "`", "`device", "\x01", "\x02", "\x01`device`\x02",
                                 "\x01"
                                 "0\x02",
                                 "0\x02",
                                 "\x01"
                                 "0",
                                 "\x01"
                                 "0\x02`device`\x01"
                                 "1\x02",
                                 "{}", "`{}`"}) {
    const std::string said = without_controls(name);
    EXPECT_EQ(shown(sentence("{}: give `base`{}`vae`", name, name)),
              said + ": give <base>" + said + "<vae>");
    EXPECT_EQ(sentence("{}: give `base`", name).text(), said + ": give `base`");
    EXPECT_EQ(shown(sentence("{0} {0}", name)), said + " " + said);
  }
}

TEST(Sentence, KeepsThoseOfASentenceInIt) {
  const Sentence inner = sentence("{}: `vae` is missing", "a `device` b");
  const Sentence outer = sentence("{}: {}; set `base`", "the `tokenizer`", inner);
  EXPECT_EQ(shown(outer), "the `tokenizer`: a `device` b: <vae> is missing; set <base>");
  EXPECT_EQ(shown(sentence("{}", sentence("{}", outer))), shown(outer));
  EXPECT_EQ(fmt::format("{}", outer), outer.text());
  EXPECT_EQ(shown(sentence("{}", inner.text())), inner.text());
}

template <class Work>
Sentence thrown_by(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), error.sentence().text());
    return Error(error).sentence();  // copies have it, too
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Sentence, IsThatOfAnError) {
  EXPECT_EQ(shown(thrown_by([] { check(false, "{} `size`", "`seed`"); })), "`seed` <size>");
  EXPECT_EQ(shown(thrown_by([] { fail("{} `size`", "`seed`"); })), "`seed` <size>");
  EXPECT_EQ(shown(thrown_by([] { check_value(false, "size", "{} `size`", "`seed`"); })),
            "`seed` <size>");
  EXPECT_EQ(shown(thrown_by([] { throw Error("a `size` of text"); })), "a `size` of text");
}

// Users' data must neither drive a terminal nor break text that has to be UTF-8.
TEST(Sentence, ShowsNoControlCharacters) {
  const std::string data = "a\x1b[2Jb\nc\xff";
  const std::string shown = "a\\u001b[2Jb\\u000ac\\xff";
  EXPECT_EQ(sentence("{} is gone", data).text(), shown + " is gone");
  EXPECT_EQ(sentence("`size` of {}", data).text(), "`size` of " + shown);
  EXPECT_STREQ(Error(data).what(), shown.c_str());
  EXPECT_EQ(Error(data).sentence().text(), shown);
  EXPECT_STREQ(InvalidRequest("size", sentence("`size` of {}", data)).what(),
               ("`size` of " + shown).c_str());
}

TEST(Sentence, IsWhatTheLogGets) {
  std::string seen;
  log::set_sink([&](log::Level, const Sentence& line) { seen = shown(line); });
  log::warning("{}: `size`", "`seed`");
  EXPECT_EQ(seen, "`seed`: <size>");
  log::set_sink([&](log::Level, std::string_view line) { seen = line; });
  log::warning("{}: `size`", "`seed`");
  EXPECT_EQ(seen, "`seed`: `size`");
  log::set_sink({});
}

}  // namespace
}  // namespace octet
