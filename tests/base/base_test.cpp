// base: thread pool, files, progress.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "base/atomic_file.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/thread_pool.h"
#include "octet/progress.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class TempFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "octet-base-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

using Files = TempFolder;

std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ThreadPoolTest, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      pool.run(count, [&](int64_t index, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++runs[static_cast<size_t>(index)];
      });
      for (const auto& run : runs) EXPECT_EQ(run, 1);
    }
  }
}

TEST(ThreadPoolTest, NoTwoRunningTasksShareAThreadNumber) {
  ThreadPool pool(4);
  std::atomic<int> inside[4] = {};
  pool.run(2000, [&](int64_t, int thread) {
    EXPECT_EQ(++inside[thread], 1);
    --inside[thread];
  });
}

TEST(ThreadPoolTest, NestedRunsStayOnTheirThread) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.run(10, [&](int64_t, int outer) {
    pool.run(10, [&](int64_t, int inner) {
      EXPECT_EQ(inner, outer);
      ++total;
    });
  });
  EXPECT_EQ(total, 100);
}

TEST(ThreadPoolTest, AnExceptionReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(100, [](int64_t index, int) { check(index != 37, "task {}", index); }),
               Error);
  std::atomic<int> total{0};
  pool.run(100, [&](int64_t, int) { ++total; });
  EXPECT_EQ(total, 100);
}

TEST(ThreadPoolTest, DefaultIsThePhysicalCores) {
  EXPECT_GE(physical_cores(), 1);
  EXPECT_LE(physical_cores(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_EQ(ThreadPool(0).threads(), physical_cores());
}

TEST(ThreadPoolTest, TwoCallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> total{0};
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) pool.run(20, [&](int64_t, int) { ++total; });
  });
  for (int i = 0; i < 50; ++i) pool.run(20, [&](int64_t, int) { ++total; });
  other.join();
  EXPECT_EQ(total, 2000);
}

TEST(CheckedTest, OverflowIsAnAnswer) {
  EXPECT_EQ(checked_mul(6, 7), 42u);
  EXPECT_FALSE(checked_mul(uint64_t{1} << 40, uint64_t{1} << 40).has_value());
  EXPECT_FALSE(checked_add(~uint64_t{0}, 1).has_value());
}

TEST_F(Files, MappedFileShowsTheBytes) {
  std::ofstream(path("data")) << "octet";
  const MappedFile file(path("data"));
  EXPECT_EQ(file.bytes().size(), 5u);
  EXPECT_EQ(std::to_integer<char>(file.bytes()[4]), 't');
  std::ofstream(path("empty"));
  EXPECT_TRUE(MappedFile(path("empty")).bytes().empty());
}

std::string open_error(const std::string& path) {
  try {
    MappedFile file(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Files, MappedFileNamesWhatItCannotOpen) {
  EXPECT_EQ(open_error(path("absent")),
            path("absent") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(open_error(folder_.string()), folder_.string() + ": is not a regular file");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_error(path("fifo")), path("fifo") + ": is not a regular file");
}

TEST_F(Files, AtomicFileAppearsOnCommitOnly) {
  {
    AtomicFile file(path("out"));
    file.write(bytes_of_text("half"));
    EXPECT_FALSE(fs::exists(path("out")));
  }
  EXPECT_EQ(files(), 0u);
  std::ofstream(path("out")) << "before";
  {
    AtomicFile abandoned(path("out"));
    abandoned.write(bytes_of_text("junk"));
  }
  EXPECT_EQ(content(path("out")), "before");
  AtomicFile file(path("out"));
  file.write(bytes_of_text("whole "));
  file.write(bytes_of_text("file"));
  EXPECT_EQ(file.bytes_written(), 10u);
  file.commit();
  EXPECT_EQ(content(path("out")), "whole file");
  EXPECT_EQ(files(), 1u);
}

TEST_F(Files, AtomicFileObeysTheUmask) {
  const mode_t before = ::umask(027);
  AtomicFile file(path("out"));
  file.commit();
  ::umask(before);
  struct stat status = {};
  ASSERT_EQ(::stat(path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

// A full disk, played by the file size limit.
TEST_F(Files, AFailedWriteLeavesNothingBehind) {
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    AtomicFile file(path("out"));
    file.write(bytes_of_text(std::string(5000, 'x')));
    file.commit();
  } catch (const Error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(message, path("out") + ": writing failed after 1000 bytes: File too large");
  EXPECT_EQ(files(), 0u);
}

TEST_F(Files, AtomicFileNamesAFolderThatIsNotThere) {
  try {
    AtomicFile file(path("no/such/out"));
    FAIL() << "created";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              path("no/such/out") + ": cannot be created: No such file or directory");
  }
}

TEST_F(Files, ProgressWritesPlainLinesWhenNotOnATerminal) {
  std::FILE* out = std::fopen(path("log").c_str(), "w");
  {
    Progress progress("tuning", 100, "shapes", out);
    for (int i = 1; i <= 100; ++i) progress.update(i);
  }
  std::fclose(out);
  const std::string text = content(path("log"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.rfind("tuning: 0/100 shapes\n", 0), 0u);
  EXPECT_NE(text.find("tuning: 100/100 shapes"), std::string::npos);
}

TEST(EnvTest, TraceTopicsAreACommaList) {
  ::setenv("OCTET_TRACE", "gemm,load", 1);
  EXPECT_TRUE(env::trace("gemm"));
  EXPECT_TRUE(env::trace("load"));
  EXPECT_FALSE(env::trace("ge"));
  ::unsetenv("OCTET_TRACE");
  EXPECT_FALSE(env::trace("gemm"));
}

}  // namespace
}  // namespace octet
