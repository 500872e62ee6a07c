// hub: the layout of the cache, the lookup of what was pulled, files on their way.
#include "hub/cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "formats/temporary_folder.h"
#include "hub/partial_file.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'c');
const std::string kEtag(64, 'e');

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string sentence_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class CacheTest : public testing::Test {
 protected:
  octet::test::TemporaryFolder folder_;
  std::string root_ = folder_.file("cache");
  RepoCache cache_{root_, "owner/name"};
};

TEST_F(CacheTest, FindsTheSnapshotOfARevision) {
  EXPECT_EQ(find_snapshot("owner/name", "main", root_), "");
  cache_.make_folders(kCommit);
  std::ofstream(cache_.blob(kEtag)) << "abc";
  cache_.link(kCommit, "a/b/file", kEtag);
  cache_.write_ref("main", kCommit);
  cache_.write_ref("refs/pr/1", kCommit);
  const std::string found = find_snapshot("owner/name", "main", root_);
  EXPECT_EQ(found, root_ + "/models--owner--name/snapshots/" + kCommit);
  EXPECT_EQ(find_snapshot("owner/name", "refs/pr/1", root_), found);
  EXPECT_EQ(find_snapshot("owner/name", kCommit, root_), found);
  EXPECT_EQ(content_of(found + "/a/b/file"), "abc");
  EXPECT_EQ(fs::read_symlink(found + "/a/b/file"), "../../../../blobs/" + kEtag);
  EXPECT_TRUE(cache_.has_file(kCommit, "a/b/file", 3, kEtag));
  EXPECT_FALSE(cache_.has_file(kCommit, "a/b/file", 4, kEtag));
  EXPECT_FALSE(cache_.has_file(kCommit, "a/b/file", 3, std::string(40, 'e')));
  std::ofstream(found + "/copy") << "abc";
  EXPECT_TRUE(cache_.has_file(kCommit, "copy", 3, kEtag));
  EXPECT_EQ(find_snapshot("owner/name", "v2", root_), "");
}

TEST_F(CacheTest, ARefThatIsNotACommitLeadsNowhere) {
  cache_.make_folders(kCommit);
  cache_.write_ref("main", kCommit);
  const fs::path ref = fs::path(root_) / "models--owner--name/refs/main";
  for (const std::string& bad : {std::string("../../../.."), std::string(""), kCommit + "x"}) {
    std::ofstream(ref, std::ios::trunc) << bad;
    EXPECT_EQ(find_snapshot("owner/name", "main", root_), "") << bad;
  }
  EXPECT_THROW(find_snapshot("owner/name", "../main", root_), Error);
  EXPECT_THROW(find_snapshot("../name", "main", root_), Error);
}

TEST_F(CacheTest, ARefThatIsAPipeHoldsNobodyUp) {
  cache_.make_folders(kCommit);
  cache_.write_ref("main", kCommit);
  const std::string ref = root_ + "/models--owner--name/refs/main";
  fs::remove(ref);
  ASSERT_EQ(::mkfifo(ref.c_str(), 0600), 0);
  ::alarm(60);
  const std::string sentence = sentence_of([&] { find_snapshot("owner/name", "main", root_); });
  ::alarm(0);
  EXPECT_EQ(sentence, ref + ": is a pipe, expected a regular file");
}

TEST_F(CacheTest, ALinkThatLeadsElsewhereIsReplaced) {
  cache_.make_folders(kCommit);
  fs::create_symlink("/etc/passwd", cache_.snapshot(kCommit) / "file");
  cache_.link(kCommit, "file", kEtag);
  EXPECT_EQ(fs::read_symlink(cache_.snapshot(kCommit) / "file"), "../../blobs/" + kEtag);
  fs::create_directory(cache_.snapshot(kCommit) / "folder");
  EXPECT_THROW(cache_.link(kCommit, "folder", kEtag), Error);
}

TEST_F(CacheTest, APathThatExistsIsNoRepository) {
  ::setenv("HF_HUB_CACHE", root_.c_str(), 1);
  EXPECT_EQ(find_model(folder_.file("nothing")), folder_.file("nothing"));
  EXPECT_EQ(find_model("/etc/passwd"), "/etc/passwd");
  EXPECT_EQ(sentence_of([] { find_model("owner/name"); }),
            "owner/name: there is no such file or folder here, and no pulled repository of this "
            "name in " +
                root_ + "; if it is on the Hub: octet pull owner/name");
  for (const char* file : {"owner/a.safetensors", "owner/a.gguf", "owner/config.json"}) {
    EXPECT_EQ(find_model(file), file);
  }
  cache_.make_folders(kCommit);
  cache_.write_ref("main", kCommit);
  EXPECT_EQ(find_model("owner/name"), cache_.snapshot(kCommit).string());
  const fs::path before = fs::current_path();
  fs::create_directories(folder_.file("here/owner/name"));
  fs::current_path(folder_.file("here"));
  EXPECT_EQ(find_model("owner/name"), "owner/name");
  EXPECT_EQ(find_model("owner/nmae"), "owner/nmae");  // rather a slip than a repository
  fs::remove(folder_.file("here/owner/name"));
  EXPECT_EQ(find_model("owner/name"), cache_.snapshot(kCommit).string());
  fs::current_path(before);
  ::unsetenv("HF_HUB_CACHE");
}

TEST_F(CacheTest, APartialFileIsTakenUp) {
  const std::string target = folder_.file("blob");
  {
    PartialFile file(target, 10, 4);
    EXPECT_EQ(file.ranges(), 3u);
    EXPECT_EQ(file.range(2).begin, 8u);
    EXPECT_EQ(file.range(2).end, 10u);
    file.append(1, bytes_of("ef"));
    file.append(2, bytes_of("ij"));
    file.append(1, bytes_of("g"));
    EXPECT_THROW(file.append(1, bytes_of("xx")), Error);
  }
  {
    PartialFile file(target, 10, 5);  // the ranges of the earlier run stay
    EXPECT_EQ(file.ranges(), 3u);
    EXPECT_EQ(file.bytes_done(), 5u);
    EXPECT_EQ(file.range(1).done, 3u);
    file.append(0, bytes_of("abcd"));
    file.append(1, bytes_of("h"));
    file.finish();
  }
  EXPECT_EQ(content_of(target), "abcdefghij");
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(target).parent_path()), {}), 1);
}

TEST_F(CacheTest, APartialFileOfAnotherSizeBeginsAnew) {
  const std::string target = folder_.file("blob");
  { PartialFile(target, 10, 4).append(0, bytes_of("abcd")); }
  { EXPECT_EQ(PartialFile(target, 11, 4).bytes_done(), 0u); }
  { PartialFile(target, 11, 4).append(0, bytes_of("abcd")); }
  fs::remove(target + ".octet.incomplete");
  EXPECT_EQ(PartialFile(target, 11, 4).bytes_done(), 0u);
}

TEST_F(CacheTest, APartialFileBecomesOneStream) {
  const std::string target = folder_.file("blob");
  PartialFile file(target, 10, 4);
  file.append(1, bytes_of("ef"));
  file.restart_as_one();
  EXPECT_EQ(file.ranges(), 1u);
  EXPECT_EQ(file.bytes_done(), 0u);
  file.append(0, bytes_of("abc"));
  file.forget(0);
  file.append(0, bytes_of("01xx"));
  file.forget(0, 2);
  EXPECT_EQ(file.bytes_done(), 2u);
  file.append(0, bytes_of("23456789"));
  file.remove();
  EXPECT_FALSE(fs::exists(target + ".octet.incomplete"));
  EXPECT_FALSE(fs::exists(target + ".octet.ranges"));
}

}  // namespace
}  // namespace octet::hub
