// base: mapped files and files that appear whole.
#include "octet/tools/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/temporary_name.h"
#include "formats/folder_watch.h"
#include "formats/temporary_folder.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  size_t files() const { return folder_.entries(); }
  test::TemporaryFolder folder_;
};

std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void write_whole(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(bytes_of_text(text));
  file.commit();
}

std::string create_error(const std::string& path) {
  try {
    AtomicFile file(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

std::string read_to_end(int fd) {
  std::string text;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(fd, piece, sizeof(piece))) > 0;) {
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
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
  EXPECT_EQ(open_error(folder_.path()), folder_.path() + ": is not a regular file");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_error(path("fifo")), path("fifo") + ": is not a regular file");
}

// The system's calls would take what stands before it for the path.
TEST_F(Files, ANulByteDoesNotEndAPath) {
  std::ofstream(path("a")) << "old";
  const std::string name = path("a") + '\0' + "b";
  EXPECT_NE(open_error(name).find("has a NUL byte"), std::string::npos);
  EXPECT_THROW(AtomicFile file(name), Error);
}

// Pages of this process in memory that files back (the third number of statm counts them alone).
int64_t resident_file_bytes() {
  int64_t total = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> total >> resident >> shared;
  return shared * ::sysconf(_SC_PAGESIZE);
}

TEST_F(Files, MappedFileReleasesItsPages) {
  constexpr size_t kSize = size_t{64} << 20;
  std::string content(kSize, '\0');
  for (size_t i = 0; i < kSize; ++i) content[i] = static_cast<char>(i * 7 + i / 4096);
  std::ofstream(path("large"), std::ios::binary) << content;
  const MappedFile file(path("large"));
  const auto same = [&] { return std::memcmp(file.bytes().data(), content.data(), kSize) == 0; };
  const int64_t before = resident_file_bytes();
  EXPECT_TRUE(same());
  const int64_t touched = resident_file_bytes();
  EXPECT_GT(touched - before, int64_t{kSize} - (1 << 20));
  file.release(file.bytes().subspan(1));
  // A megabyte for pages of libraries that come and go meanwhile.
  EXPECT_LT(resident_file_bytes() - before, 1 << 20);
  EXPECT_TRUE(same());
  file.release(file.bytes().subspan(kSize / 4, kSize / 2));
  EXPECT_LT(resident_file_bytes(), touched - int64_t{kSize} / 2 + (1 << 20));
  EXPECT_TRUE(same());
}

TEST_F(Files, MappedFileReleasesOnlyWhatIsItsOwn) {
  std::ofstream(path("small")) << "octet";
  const MappedFile file(path("small"));
  file.release({});
  file.release(file.bytes());
  file.release(file.bytes().subspan(5));
  EXPECT_EQ(std::to_integer<char>(file.bytes()[4]), 't');
  const std::string other(100, 'x');
  EXPECT_THROW(file.release(bytes_of_text(other)), Error);
  EXPECT_THROW(file.release({file.bytes().data(), 6}), Error);
  EXPECT_THROW(file.release({file.bytes().data() - 1, 2}), Error);
}

TEST_F(Files, MappedFileReadsAheadOnlyWhatIsItsOwn) {
  std::ofstream(path("small")) << "octet";
  const MappedFile file(path("small"));
  file.read_ahead({});
  file.read_ahead(file.bytes());
  EXPECT_EQ(std::to_integer<char>(file.bytes()[4]), 't');
  EXPECT_THROW(file.read_ahead({file.bytes().data(), 6}), Error);
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
  EXPECT_EQ(folder_.read("out"), "before");
  AtomicFile file(path("out"));
  file.write(bytes_of_text("whole "));
  file.write(bytes_of_text("file"));
  EXPECT_EQ(file.bytes_written(), 10u);
  file.commit();
  EXPECT_EQ(folder_.read("out"), "whole file");
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

TEST_F(Files, AtomicFileRefusesWhatCannotBeAFile) {
  const std::string folder = folder_.path();
  EXPECT_EQ(create_error(folder), folder + ": is a folder, expected a file");
  EXPECT_EQ(create_error(path("new/")), path("new/") + ": is a folder, expected a file");
  EXPECT_EQ(create_error(""), "the path of a file to write is empty, expected a file name");
  fs::create_symlink("loop", path("loop"));
  EXPECT_EQ(create_error(path("loop")),
            path("loop") + ": cannot be created: Too many levels of symbolic links");
  EXPECT_EQ(files(), 1u);
}

// More than a pipe holds, so that the writer has to wait for the reader.
TEST_F(Files, AtomicFileWritesIntoAFifo) {
  const std::string text(300'000, 'x');
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const int fd = ::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(fd, 0);
  AtomicFile file(path("fifo"));
  ::fcntl(fd, F_SETFL, 0);
  std::string got;
  std::thread reader([&] { got = read_to_end(fd); });
  file.write(bytes_of_text(text));
  file.commit();
  reader.join();
  ::close(fd);
  EXPECT_TRUE(got == text);
  EXPECT_TRUE(fs::is_fifo(path("fifo")));
  EXPECT_EQ(files(), 1u);
}

TEST_F(Files, AtomicFileDoesNotWaitForAReader) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(create_error(path("fifo")),
            path("fifo") +
                ": is a pipe without a reader or a socket, expected a pipe that is read; start its "
                "reader first");
  EXPECT_TRUE(fs::is_fifo(path("fifo")));
}

// What /dev/stdout is when a program collects the output in a file that it has deleted.
TEST_F(Files, AtomicFileWritesIntoAFileWithoutAName) {
  const int fd = ::open(path("gone").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  fs::remove(path("gone"));
  write_whole("/proc/self/fd/" + std::to_string(fd), "whole");
  EXPECT_EQ(read_to_end(fd), "whole");
  ::close(fd);
  EXPECT_EQ(files(), 0u);
}

TEST_F(Files, AtomicFileReplacesWhatALinkLeadsTo) {
  fs::create_directory(path("sub"));
  folder_.write("sub/real", "before");
  fs::create_symlink("sub/real", path("second"));
  fs::create_symlink(path("second"), path("first"));
  write_whole(path("first"), "after");
  EXPECT_TRUE(fs::is_symlink(path("first")));
  EXPECT_TRUE(fs::is_symlink(path("second")));
  EXPECT_FALSE(fs::is_symlink(path("sub/real")));
  EXPECT_EQ(folder_.read("sub/real"), "after");

  fs::create_symlink("sub/new", path("dangling"));
  write_whole(path("dangling"), "created");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
  EXPECT_EQ(folder_.read("sub/new"), "created");
  EXPECT_EQ(files(), 4u);
}

TEST_F(Files, AtomicFileKeepsThePermissionsOfTheFileItReplaces) {
  for (const unsigned mode : {0600u, 0666u, 0751u}) {
    folder_.write("out", "before");
    ASSERT_EQ(::chmod(path("out").c_str(), mode), 0);
    const mode_t before = ::umask(027);
    write_whole(path("out"), "after");
    ::umask(before);
    EXPECT_EQ(mode_of(path("out")), mode);
    EXPECT_EQ(folder_.read("out"), "after");
  }
}

TEST_F(Files, AtomicFileTakesTheLongestName) {
  const std::string longest(255, 'n');
  write_whole(path(longest), "whole");
  EXPECT_EQ(folder_.read(longest), "whole");
  EXPECT_EQ(create_error(path(longest + "n")),
            path(longest + "n") + ": cannot be created: File name too long");
  EXPECT_EQ(files(), 1u);
}

// What a program does that a signal ends at once.
TEST_F(Files, RememberedTemporariesAreRemoved) {
  write_whole(path("one"), "1");
  write_whole(path("two"), "2");
  write_whole(path("three"), "3");
  TemporaryName one, three;
  one.remember(path("one"));
  {
    TemporaryName two;
    two.remember(path("two"));
  }
  three.remember(path("three"));
  three.forget();
  remove_temporary_files();
  EXPECT_FALSE(fs::exists(path("one")));
  EXPECT_TRUE(fs::exists(path("two")) && fs::exists(path("three")));
  one.remember(std::string(100'000, 'x'));  // longer than any path
  std::vector<TemporaryName> many(20);
  for (TemporaryName& name : many) name.remember(path("two"));
  remove_temporary_files();
  EXPECT_FALSE(fs::exists(path("two")));
}

TEST_F(Files, ACommittedFileIsNotRemoved) {
  write_whole(path("out"), "whole");
  remove_temporary_files();
  EXPECT_TRUE(fs::exists(path("out")));
  EXPECT_EQ(files(), 1u);
}

TEST_F(Files, AtomicFilesInOneFolderDoNotMeet) {
  folder_.write(".octet." + std::to_string(::getpid()) + ".0.tmp", "of another machine");
  AtomicFile one(path("one"));
  AtomicFile two(path("two"));
  one.write(bytes_of_text("1"));
  two.write(bytes_of_text("2"));
  one.commit();
  two.commit();
  EXPECT_EQ(folder_.read("one"), "1");
  EXPECT_EQ(folder_.read("two"), "2");
  EXPECT_EQ(files(), 3u);
}

TEST_F(Files, AKilledProgramLeavesNoTemporary) {
  if (!test::has_unnamed_files(folder_.path())) GTEST_SKIP() << "no O_TMPFILE on this file system";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(path("out"));
    file.write(bytes_of_text("half"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(files(), 0u);
}

// So there is no moment in which a kill would leave another name behind.
TEST_F(Files, ANewFileHasNoNameButItsOwn) {
  if (!test::has_unnamed_files(folder_.path())) GTEST_SKIP() << "no O_TMPFILE on this file system";
  fs::create_symlink("out", path("link"));
  test::FolderWatch watch(folder_.path());
  write_whole(path("link"), "new");
  EXPECT_EQ(watch.names(), std::vector<std::string>{"out"});
  EXPECT_EQ(folder_.read("out"), "new");
  write_whole(path("out"), "newer");
  const std::string temporary = ".octet." + std::to_string(::getpid()) + ".0.tmp";
  EXPECT_EQ(watch.names(), (std::vector<std::string>{temporary, "out"}));
  EXPECT_EQ(folder_.read("out"), "newer");
}

// Two programs that make the same file: the second replaces it.
TEST_F(Files, AFileThatAppearsMeanwhileIsReplaced) {
  AtomicFile file(path("out"));
  file.write(bytes_of_text("second"));
  write_whole(path("out"), "the first");
  file.commit();
  EXPECT_EQ(folder_.read("out"), "second");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace octet
