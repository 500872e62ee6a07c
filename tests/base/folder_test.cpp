// base: what is in folders.
#include "base/folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "formats/temporary_folder.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

TEST(FolderTest, TellsWhatIsInItAndBelow) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder.file("below/empty"));
  fs::create_directory_symlink(folder.path(), folder.file("below/circle"));
  folder.write("one", "1");
  folder.write("below/two", "2");
  std::error_code error;
  auto names = names_in(folder.path(), error);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"below", "one"}));
  auto files = files_below(folder.path(), error);
  std::ranges::sort(files);
  EXPECT_EQ(files, (std::vector<std::string>{"below/circle", "below/two", "one"}));
  EXPECT_FALSE(error);
}

TEST(FolderTest, SaysWhyItCannotBeRead) {
  const test::TemporaryFolder folder;
  std::error_code error;
  EXPECT_TRUE(names_in(folder.file("missing"), error).empty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_TRUE(files_below(folder.write("file", ""), error).empty());
  EXPECT_EQ(error, std::errc::not_a_directory);
}

}  // namespace
}  // namespace octet
