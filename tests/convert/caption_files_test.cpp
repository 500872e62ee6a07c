// Captions from files, lines and folders.
#include <gtest/gtest.h>

#include "convert/calibrate.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/ideogram4/caption.h"
#include "models/sample_captions.h"

namespace octet::test {
namespace {

std::vector<std::string> read_captions(const std::vector<std::string>& paths) {
  return convert::read_captions(models::family_named("ideogram4"), paths);
}

class CaptionFiles : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string a_ = valid_captions()[0].text;
  const std::string b_ = valid_captions()[1].text;
  const std::string c_ = valid_captions()[2].text;
};

TEST_F(CaptionFiles, EachIsOne) {
  EXPECT_EQ(read_captions({folder_.write("b.txt", b_), folder_.write("a.json", a_ + "\n")}),
            (std::vector{b_, a_}));
}

TEST_F(CaptionFiles, LinesAreCaptions) {
  const std::string path = folder_.write("all.jsonl", a_ + "\r\n\n  \n" + b_ + "\n" + c_);
  EXPECT_EQ(read_captions({path}), (std::vector{a_, b_, c_}));
  EXPECT_EQ(read_captions({path, path}).size(), 6u);
}

TEST_F(CaptionFiles, FoldersAreReadByName) {
  folder_.write("2.json", b_);
  folder_.write("10.json", a_);
  folder_.write("readme.md", "about");
  EXPECT_EQ(read_captions({folder_.path()}), (std::vector{a_, b_}));
}

TEST_F(CaptionFiles, ErrorsNameThePlace) {
  EXPECT_ERROR_WITH(read_captions({}), "no file was named");
  EXPECT_ERROR_WITH(read_captions({folder_.file("absent.json")}), "absent.json");
  EXPECT_ERROR_WITH(read_captions({folder_.path()}), "contains no .json files");
  EXPECT_ERROR_WITH(read_captions({folder_.write("empty.jsonl", "\n\n")}), "contains no captions");
  EXPECT_ERROR_WITH(read_captions({folder_.write("bad.jsonl", a_ + "\n\n{\n")}),
                    "bad.jsonl, line 3");
  EXPECT_ERROR_WITH(read_captions({folder_.write("bad.json", "a cat")}), "bad.json");
  EXPECT_ERROR_WITH(read_captions({folder_.write("empty.json", "")}), "empty.json");
  EXPECT_ERROR_WITH(read_captions({folder_.write(
                        "long.json", std::string(ideogram4::kMaxCaptionBytes + 1, ' '))}),
                    "long.json");
}

}  // namespace
}  // namespace octet::test
