// The folder of converted weights: what others may have put there, and who may write to it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weights/converted_cache_fixture.h"

namespace octet::test {
namespace {

using ConvertedCacheFolderTest = ConvertedCacheTest;

// A link to a file of the user, where the cache wants to write: it is replaced, the file stays.
TEST_F(ConvertedCacheFolderTest, ALinkIsNotWrittenThrough) {
  load();
  ASSERT_EQ(files().size(), 1u);
  const fs::path cached = files().front();
  folder_.write("mine", "mine");
  for (const std::string ending : {"", ".part", ".part.journal", ".part.journal.new"}) {
    fs::remove(cached);
    fs::create_symlink(folder_.file("mine"), cached.string() + ending);
    load();
    EXPECT_EQ(folder_.read("mine"), "mine") << ending;
    fs::remove(cached.string() + ending);
  }
  load();
  EXPECT_NE(cache(source()).find(), nullptr);
  fs::remove(cached);
  fs::create_hard_link(folder_.file("mine"), cached.string() + ".part");
  load();
  EXPECT_EQ(folder_.read("mine"), "mine");
}

TEST_F(ConvertedCacheFolderTest, AFolderThatAllMayWriteToIsNotBelieved) {
  load();
  EXPECT_NE(cache(source()).find(), nullptr);
  ::chmod(cache_folder().c_str(), 0777);
  EXPECT_EQ(cache(source()).find(), nullptr);
  for (const fs::path& file : files()) fs::remove(file);
  load();
  EXPECT_TRUE(files().empty());
  ::chmod(cache_folder().c_str(), 0755);
  load();
  EXPECT_EQ(files().size(), 1u);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(cache_folder().c_str(), 12345, 12345), 0);
  EXPECT_EQ(cache(source()).find(), nullptr);
  ASSERT_EQ(::chown(cache_folder().c_str(), 0, 0), 0);
}

TEST_F(ConvertedCacheFolderTest, ALinkInItsPlaceIsNotFollowed) {
  fs::create_directory(folder_.file("mine"));
  fs::create_directory_symlink(folder_.file("mine"), cache_folder());
  load();
  EXPECT_TRUE(fs::is_empty(folder_.file("mine")));
}

}  // namespace
}  // namespace octet::test
