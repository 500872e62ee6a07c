// base: files that only look like some, files that were replaced, and our own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/file_identity.h"
#include "base/regular_file.h"
#include "base/start_threads.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

class OddFiles : public testing::Test {
 protected:
  // A pipe that is opened the plain way would hold the test up for ever.
  void SetUp() override { ::alarm(60); }
  void TearDown() override { ::alarm(0); }

  TemporaryFolder folder_;
};

TEST_F(OddFiles, AreNamedInASentence) {
  const std::string loop = folder_.file("loop"), nowhere = folder_.file("nowhere");
  fs::create_symlink("loop", loop);
  fs::create_symlink("missing", nowhere);
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder_.file("to_pipe"));
  const std::pair<std::string, const char*> cases[] = {
      {loop, "symbolic links"},
      {nowhere, "is a link to a file that is missing"},
      {folder_.file("pipe"), "is a pipe, expected a regular file"},
      {folder_.file("to_pipe"), "is a pipe, expected a regular file"},
      {folder_.path(), "is a folder, expected a regular file"},
      {"/dev/null", "is a device, expected a regular file"},
  };
  for (const auto& [path, words] : cases) {
    for (const std::string& sentence :
         {error_of([&] { is_file_there(path); }), error_of([&] { read_start(path, 10); })}) {
      EXPECT_TRUE(sentence.starts_with(path + ": ")) << sentence;
      EXPECT_NE(sentence.find(words), sentence.npos) << sentence;
    }
  }
}

TEST_F(OddFiles, PlainOnesAreReadUpToALimit) {
  const std::string path = folder_.write("file", "0123456789");
  fs::create_symlink("file", folder_.file("link"));
  for (const std::string& name : {path, folder_.file("link")}) {
    EXPECT_TRUE(is_file_there(name));
    EXPECT_EQ(read_start(name, 4), "0123");
    EXPECT_EQ(read_start(name, 400), "0123456789");
  }
  for (const std::string& name : {folder_.file("none"), path + "/none", folder_.file("a/b")}) {
    EXPECT_FALSE(is_file_there(name));
    EXPECT_EQ(read_start(name, 4), std::nullopt);
  }
}

// --- identity ---

class Identity : public testing::Test {
 protected:
  static std::string of(const std::string& path) { return identity_of(MappedFile(path)); }

  // As cp -p and rsync -t do: other bytes, the same size, the same time.
  void replace(const std::string& name, const std::string& content) const {
    const auto time = fs::last_write_time(folder_.file(name));
    folder_.write("new", content);
    fs::last_write_time(folder_.file("new"), time);
    fs::rename(folder_.file("new"), folder_.file(name));
  }

  TemporaryFolder folder_;
};

TEST_F(Identity, TellsAReplacedFileThatKeptItsTime) {
  const std::string path = folder_.write("file", "some weights");
  const std::string before = of(path);
  EXPECT_EQ(of(path), before);
  const MappedFile mapped(path);
  replace("file", "more weights");
  EXPECT_NE(of(path), before);
  EXPECT_EQ(identity_of(mapped), before) << "of the file that was opened, not of the name";
}

TEST_F(Identity, TellsAFileThatWasWrittenInPlace) {
  std::string content(3'000'000, 'x');
  const std::string path = folder_.write("file", content);
  const auto time = fs::last_write_time(path);
  const std::string before = of(path);
  const int fd = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "y", 1, 1'234'567), 1);  // between the samples
  ::close(fd);
  fs::last_write_time(path, time);
  EXPECT_NE(of(path), before);
}

TEST_F(Identity, MovesWithTheFile) {
  fs::create_directory(folder_.file("a"));
  const std::string before = of(folder_.write("a/file", "some weights"));
  fs::rename(folder_.file("a"), folder_.file("b"));
  EXPECT_EQ(of(folder_.file("b/file")), before);
}

// What is left where inodes and times say nothing: begin, end and some places between.
TEST_F(Identity, HasSamplesOfTheContent) {
  const auto samples = [](const std::string& identity) {
    return identity.substr(identity.find("samples"));
  };
  const std::string small(1000, 'x'), large(10'000'000, 'x');
  for (const std::string& content : {small, large}) {
    const std::string whole = samples(of(folder_.write("file", content)));
    EXPECT_EQ(samples(of(folder_.write("file", content))), whole);
    for (const size_t at : {size_t{0}, size_t{500}, content.size() - 1}) {
      std::string other = content;
      other[at] = 'y';
      EXPECT_NE(samples(of(folder_.write("file", other))), whole) << at;
    }
    // A tensor of other numbers, wherever it lies.
    std::string other = content;
    other.replace(content.size() / 3, content.size() / 10, content.size() / 10, 'y');
    EXPECT_NE(samples(of(folder_.write("file", other))), whole);
  }
  EXPECT_NE(samples(of(folder_.write("file", small + "x"))),
            samples(of(folder_.write("f", small))));
}

// --- threads ---

TEST(StartThreads, GivesAsManyAsThereAre) {
  for (const int most : {0, 3, 100}) {
    std::atomic<int> ran = 0;
    int asked = 0;
    auto threads = start_threads(
        8, [&] { ++ran; },
        [&](const std::function<void()>& work) {
          if (asked++ == most) {
            throw std::system_error(
                std::make_error_code(std::errc::resource_unavailable_try_again));
          }
          return std::thread(work);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(threads.size(), static_cast<size_t>(std::min(most, 8)));
    EXPECT_EQ(ran, std::min(most, 8));
  }
}

}  // namespace
}  // namespace octet::test
