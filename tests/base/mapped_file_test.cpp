// base: files that change while they are mapped.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

// A handler that the program has before the first file is mapped.
constexpr int kSeenByTheProgram = 42;
void of_the_program(int, siginfo_t*, void*) { ::_exit(kSeenByTheProgram); }
const int installed_first = [] {
  struct sigaction action = {};
  action.sa_sigaction = of_the_program;
  action.sa_flags = SA_SIGINFO;
  return ::sigaction(SIGBUS, &action, nullptr);
}();

const size_t kPage = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

class MappedFiles : public testing::Test {
 protected:
  MappedFile map(size_t bytes) const {
    return MappedFile(folder_.write("data", std::string(bytes, 'x')));
  }
  void shrink(size_t bytes) const { fs::resize_file(folder_.file("data"), bytes); }

  TemporaryFolder folder_;
};

int64_t sum_of(std::span<const std::byte> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0},
                         [](int64_t sum, std::byte byte) { return sum + static_cast<int>(byte); });
}

TEST_F(MappedFiles, AreIntactWhenNothingHappened) {
  const MappedFile file = map(3 * kPage);
  EXPECT_EQ(sum_of(file.bytes()), int64_t{'x'} * static_cast<int64_t>(3 * kPage));
  file.check_intact();
  // Neither is a change of what it holds.
  fs::permissions(folder_.file("data"), fs::perms::owner_read);
  fs::create_hard_link(folder_.file("data"), folder_.file("link"));
  file.check_intact();
}

TEST_F(MappedFiles, AreCopiedInParts) {
  std::string text(3 * kPage + 5, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  const MappedFile file(folder_.write("data", text));
  std::string copied(kPage + 3, '-');
  file.copy(file.bytes().subspan(kPage - 1, copied.size()),
            reinterpret_cast<std::byte*>(copied.data()));
  EXPECT_EQ(copied, text.substr(kPage - 1, copied.size()));
  file.copy(file.bytes().last(0), nullptr);
  file.check_intact();
  std::byte elsewhere[8];
  EXPECT_ERROR_WITH(file.copy(elsewhere, elsewhere), "are not a part of the mapped file");
}

// What is missing reads as zeros, as through the mapping, and is told of.
TEST_F(MappedFiles, ThatShrankAreCopiedWithZeros) {
  const MappedFile file = map(4 * kPage);
  shrink(kPage + 10);
  std::vector<std::byte> copied(4 * kPage, std::byte{1});
  file.copy(file.bytes(), copied.data());
  EXPECT_EQ(sum_of(copied), int64_t{'x'} * static_cast<int64_t>(kPage + 10));
  EXPECT_ERROR_WITH(file.check_intact(), "became shorter");
}

// As a copy over it does, before any page of it was touched.
TEST_F(MappedFiles, ThatWereWrittenToSaySo) {
  const std::string path = folder_.write("data", std::string(2 * kPage, 'x'));
  // Of long ago: a file system's clock may take milliseconds to go on.
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const MappedFile file(path);
  file.check_intact();
  shrink(0);
  shrink(2 * kPage);
  EXPECT_EQ(sum_of(file.bytes()), 0);
  EXPECT_ERROR_WITH(file.check_intact(), "something wrote to it");
}

// cp -p and rsync --inplace -t.
TEST_F(MappedFiles, ThatWereWrittenToWithTheirTimeKeptSaySo) {
  const std::string path = folder_.write("data", std::string(2 * kPage, 'x'));
  const MappedFile file(path);
  const auto time = fs::last_write_time(path);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the file system's clock goes on
  folder_.write("data", std::string(2 * kPage, 'y'));
  fs::last_write_time(path, time);
  EXPECT_ERROR_WITH(file.check_intact(), "something wrote to it");
}

TEST_F(MappedFiles, ThatBecomeShorterReadAsZerosAndSaySo) {
  const MappedFile file = map(5 * kPage);
  shrink(2 * kPage);
  EXPECT_EQ(sum_of(file.bytes().subspan(4 * kPage)), 0);
  EXPECT_EQ(sum_of(file.bytes()), int64_t{'x'} * static_cast<int64_t>(2 * kPage));
  EXPECT_EQ(error_of([&] { file.check_intact(); }),
            fmt::format("{}: became shorter while it was being read ({} bytes when it was opened, "
                        "{} now); wait until nothing writes to it, then start again",
                        folder_.file("data"), 5 * kPage, 2 * kPage));
}

// No page is lost, so nobody gets a signal.
TEST_F(MappedFiles, ThatBecomeShorterWithinAPageSaySo) {
  const MappedFile file = map(kPage + 100);
  shrink(kPage + 50);
  EXPECT_EQ(sum_of(file.bytes()), int64_t{'x'} * static_cast<int64_t>(kPage + 50));
  EXPECT_ERROR_WITH(file.check_intact(), "became shorter");
}

TEST_F(MappedFiles, ThatWereShorterForAWhileSaySo) {
  const MappedFile file = map(2 * kPage);
  shrink(0);
  EXPECT_EQ(sum_of(file.bytes()), 0);
  shrink(2 * kPage);
  EXPECT_ERROR_WITH(file.check_intact(), "a part of it could not be read");
}

TEST_F(MappedFiles, AreWatchedOneByOne) {
  const MappedFile shrinking = map(2 * kPage);
  const MappedFile other(folder_.write("other", std::string(2 * kPage, 'y')));
  shrink(0);
  EXPECT_EQ(sum_of(shrinking.bytes()), 0);
  other.check_intact();
  EXPECT_ERROR_WITH(shrinking.check_intact(), "data: became shorter");
  // A place in the table is used again, without what happened there.
  { const MappedFile gone = map(kPage); }
  map(kPage).check_intact();
}

TEST_F(MappedFiles, AreWatchedWhereTheyMoveTo) {
  MappedFile file = map(2 * kPage);
  const MappedFile moved = std::move(file);
  MappedFile assigned(folder_.write("other", "y"));
  shrink(kPage);
  EXPECT_EQ(sum_of(moved.bytes().subspan(kPage)), 0);
  EXPECT_ERROR_WITH(moved.check_intact(), "became shorter");
  assigned = MappedFile(folder_.file("data"));
  shrink(0);
  EXPECT_EQ(sum_of(assigned.bytes()), 0);
  EXPECT_ERROR_WITH(assigned.check_intact(), "became shorter");
}

TEST_F(MappedFiles, CanBeReadByManyThreadsWhileTheyShrink) {
  constexpr size_t kPages = 256;
  const MappedFile file = map(kPages * kPage);
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        for (size_t page = 0; page < kPages; ++page) sum_of(file.bytes().subspan(page * kPage, 8));
      }
    });
  }
  for (size_t pages = kPages; pages-- > 0;) shrink(pages * kPage);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(sum_of(file.bytes()), 0);
  EXPECT_ERROR_WITH(file.check_intact(), "0 now");
}

TEST_F(MappedFiles, ReadPutsTheShrinkingBeforeWhatTheReaderThought) {
  const MappedFile file = map(2 * kPage);
  EXPECT_EQ(file.read([](auto bytes) { return bytes.size(); }), 2 * kPage);
  EXPECT_ERROR_WITH(file.read([](auto) -> int { fail("I do not like it"); }), "do not like it");
  shrink(kPage);
  EXPECT_ERROR_WITH(file.read([](auto bytes) { return sum_of(bytes); }), "became shorter");
  EXPECT_ERROR_WITH(file.read([](auto) -> int { fail("I do not like it"); }), "became shorter");
}

// How a child ends that does something after it mapped a file.
template <class Act>
int status_of_child(const std::string& path, const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    const MappedFile file(path);
    act();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(MappedFiles, LeaveOtherBusErrorsToTheProgram) {
  ASSERT_EQ(installed_first, 0);
  const std::string path = folder_.write("data", "octet");
  const int sent = status_of_child(path, [] { ::raise(SIGBUS); });
  EXPECT_TRUE(WIFEXITED(sent) && WEXITSTATUS(sent) == kSeenByTheProgram) << sent;
  const std::string other = folder_.write("other", std::string(kPage, 'y'));
  const int fault = status_of_child(path, [&] {
    const int fd = ::open(other.c_str(), O_RDWR);
    const void* bytes = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, fd, 0);
    if (::ftruncate(fd, 0) != 0) ::_exit(1);
    ::_exit(*static_cast<const volatile char*>(bytes));
  });
  EXPECT_TRUE(WIFEXITED(fault) && WEXITSTATUS(fault) == kSeenByTheProgram) << fault;
}

}  // namespace
}  // namespace octet::test
