// Fields of requests in sentences: those of format strings and of Sentences, never users' data.
#include "octet/sentence.h"

#include <gtest/gtest.h>

#include "base/error.h"
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
    EXPECT_EQ(shown(sentence("{}: give `base`{}`vae`", name, name)),
              name + ": give <base>" + name + "<vae>");
    EXPECT_EQ(sentence("{}: give `base`", name).text(), name + ": give `base`");
    EXPECT_EQ(shown(sentence("{0} {0}", name)), name + " " + name);
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
