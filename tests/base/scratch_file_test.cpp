#include "base/scratch_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

// TMPDIR is `folder` as long as this lives.
class TemporariesIn {
 public:
  explicit TemporariesIn(const std::string& folder) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TemporariesIn() {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
  }
  TemporariesIn(const TemporariesIn&) = delete;
  TemporariesIn& operator=(const TemporariesIn&) = delete;

 private:
  std::string before_;
};

std::string read(ScratchFile& file, size_t count) {
  std::string text(count, '\0');
  file.read(std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

void write(ScratchFile& file, const std::string& text) {
  file.write(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(ScratchFile, GivesBackWhatItTook) {
  ScratchFile file;
  const std::string large(1 << 20, 'x');
  write(file, "one");
  write(file, "");
  write(file, large);
  for (int round = 0; round < 2; ++round) {
    file.rewind();
    EXPECT_EQ(read(file, 2), "on");
    EXPECT_EQ(read(file, 2), "ex");
    EXPECT_EQ(read(file, large.size() - 1), large.substr(1));
    EXPECT_ERROR_WITH(read(file, 1), "to its end");
  }
}

TEST(ScratchFile, HasNoName) {
  const TemporaryFolder folder;
  const TemporariesIn there(folder.path());
  ScratchFile file;
  write(file, "text");
  file.rewind();
  EXPECT_EQ(folder.entries(), 0u);
  EXPECT_EQ(read(file, 4), "text");
}

TEST(ScratchFile, NeedsAFolder) {
  const TemporaryFolder folder;
  const TemporariesIn there(folder.file("nowhere"));
  EXPECT_ERROR_WITH(ScratchFile(), "TMPDIR");
}

TEST(ScratchFile, RoomIsKnownBefore) {
  const TemporaryFolder folder;
  const TemporariesIn there(folder.path());
  check_scratch_room(1);
  EXPECT_ERROR_WITH(check_scratch_room(uint64_t{1} << 62), folder.path());
  EXPECT_ERROR_WITH(check_scratch_room(uint64_t{1} << 62), "TMPDIR");
}

}  // namespace
}  // namespace octet::test
