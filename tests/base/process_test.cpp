// base: what forks, threads and caches of a process do to what it owns.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/per_thread.h"
#include "base/thread_pool.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// The exit code of a child that runs this; to hang is to fail.
template <class Work>
int in_child(Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(work() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(ForkTest, IsCounted) {
  const uint32_t before = fork_count();
  EXPECT_EQ(in_child([&] {
              return fork_count() == before + 1 &&
                     in_child([&] { return fork_count() == before + 2; }) == 0;
            }),
            0);
  EXPECT_EQ(fork_count(), before);
}

TEST(ForkTest, APoolOfTheParentIsAnErrorAndEnds) {
  auto pool = std::make_unique<ThreadPool>(3);
  pool->run(10, [](int64_t, int) {});
  EXPECT_EQ(in_child([&] {
              const std::string message =
                  test::error_of([&] { pool->run(10, [](int64_t, int) {}); });
              pool.reset();
              std::atomic<int> ran{0};
              ThreadPool own(3);
              own.run(10, [&](int64_t, int) { ++ran; });
              return test::contains(message, "forked") && ran == 10;
            }),
            0);
  pool->run(10, [](int64_t, int) {});
}

// Somebody writes to the log all the time, also when the process forks.
TEST(ForkTest, TheLogOfAChildIsFree) {
  std::atomic<bool> quit{false};
  log::set_sink([](log::Level, const Sentence&) { std::this_thread::yield(); });
  std::thread writes([&] {
    while (!quit) log::info("a line");
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_child([] {
                log::info("a line");
                return true;
              }),
              0);
  }
  quit = true;
  writes.join();
  log::set_sink({});
}

TEST(ThreadPoolStopTest, BeginsNoTaskWhileItIsStopped) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<bool> stop{false};
    std::atomic<int> ran{0};
    pool.stop_when(&stop);
    EXPECT_THROW(pool.run(1000,
                          [&](int64_t, int) {
                            ++ran;
                            stop = true;
                          }),
                 Cancelled);
    EXPECT_LE(ran, threads);
    EXPECT_THROW(pool.run(1, [](int64_t, int) {}), Cancelled);
    stop = false;
    ran = 0;
    pool.run(1000, [&](int64_t, int) { ++ran; });
    EXPECT_EQ(ran, 1000);
  }
}

TEST(PerThreadTest, EachThreadHasItsOwn) {
  static std::atomic<int> alive{0};
  struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
    int value = 0;
  };
  static PerThread<Counted> each;
  each.get().value = 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      EXPECT_EQ(each.get().value++, 0);
      EXPECT_EQ(each.get().value, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alive, 1) << "values end with their threads";
  EXPECT_EQ(each.get().value, 1);
}

// --- caches ---

TEST(CacheFilesTest, ALinkIsReplacedNotFollowed) {
  const test::TemporaryFolder folder;
  folder.write("mine", "mine");
  const std::string link = folder.file("link");
  fs::create_symlink(folder.file("mine"), link);
  AtomicFile file(link, AtLink::replace);
  file.write(std::as_bytes(std::span("anew", 4)));
  file.commit();
  EXPECT_EQ(folder.read("mine"), "mine");
  EXPECT_EQ(folder.read("link"), "anew");
  EXPECT_FALSE(fs::is_symlink(link));
}

TEST(CacheFilesTest, ALockIsNoFileElsewhere) {
  const test::TemporaryFolder folder;
  fs::create_symlink(folder.file("elsewhere"), folder.file("a.lock"));
  EXPECT_ERROR_WITH(FileLock(folder.file("a.lock"), std::chrono::milliseconds(0)), "a.lock");
  EXPECT_FALSE(fs::exists(folder.file("elsewhere")));
}

TEST(CacheFilesTest, AFolderIsOnesOwn) {
  const test::TemporaryFolder folder;
  const fs::path made = fs::path(folder.file("a")) / "b";
  check_own_folder(made);
  const mode_t before = ::umask(0);
  make_own_folder(made);
  ::umask(before);
  check_own_folder(made);
  ASSERT_EQ(::chmod(made.c_str(), 0777), 0);
  EXPECT_ERROR_WITH(check_own_folder(made), "everybody may write");
  EXPECT_ERROR_WITH(make_own_folder(made), "OCTET_CACHE_DIR");
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod(made.c_str(), 0755), 0);
  ASSERT_EQ(::chown(made.c_str(), 12345, 12345), 0);
  EXPECT_ERROR_WITH(check_own_folder(made), "another user (number 12345)");
}

TEST(CacheFilesTest, TheCacheAboveIsOnesOwnToo) {
  const test::TemporaryFolder folder;
  const char* const set = ::getenv("OCTET_CACHE_DIR");
  const std::string before = set == nullptr ? "" : set;
  for (const char* ending : {"", "/"}) {
    const fs::path cache = folder.file("cache"), plans = cache.string() + ending + "/plans";
    ::setenv("OCTET_CACHE_DIR", (cache.string() + ending).c_str(), 1);
    ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);  // like /tmp
    make_own_folder(*env::cache_dir() / "plans");
    for (const mode_t mode : {0777, 01777}) {
      ASSERT_EQ(::chmod(cache.c_str(), mode), 0);
      EXPECT_ERROR_WITH(check_own_folder(*env::cache_dir() / "plans"), "everybody may write");
      fs::remove(plans);
      EXPECT_ERROR_WITH(make_own_folder(*env::cache_dir() / "plans"), "everybody may write");
      EXPECT_FALSE(fs::exists(plans));
    }
    fs::remove_all(cache);
  }
  before.empty() ? ::unsetenv("OCTET_CACHE_DIR") : ::setenv("OCTET_CACHE_DIR", before.c_str(), 1);
}

TEST(CacheFilesTest, OnlyAFolderIsOne) {
  const test::TemporaryFolder folder;
  fs::create_directory_symlink(folder.path(), folder.file("link"));
  EXPECT_ERROR_WITH(make_own_folder(folder.file("link")), "is a link, expected a folder");
  EXPECT_ERROR_WITH(make_own_folder(folder.write("file", "")), "file is not a folder");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_ERROR_WITH(make_own_folder(folder.file("pipe")), "pipe is not a folder");
}

}  // namespace
}  // namespace octet
