// base: checked arithmetic, progress, environment variables.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/env.h"
#include "formats/temporary_folder.h"
#include "octet/tools/progress.h"

namespace octet {
namespace {

TEST(CheckedTest, OverflowIsAnAnswer) {
  EXPECT_EQ(checked_mul(6, 7), 42u);
  EXPECT_FALSE(checked_mul(uint64_t{1} << 40, uint64_t{1} << 40).has_value());
  EXPECT_FALSE(checked_add(~uint64_t{0}, 1).has_value());
}

TEST(ProgressTest, WritesOneLineWhenNotOnATerminal) {
  const test::TemporaryFolder folder;
  std::FILE* out = std::fopen(folder.file("log").c_str(), "w");
  {
    Progress progress("tuning", 100, "shapes", out);
    for (int i = 1; i <= 100; ++i) progress.update(i);
  }
  std::fclose(out);
  const std::string text = folder.read("log");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text, "tuning: 0/100 shapes\n");
}

// Unbuffered as stderr is, so that every line meets the error.
TEST(ProgressTest, AFullDiskDoesNotStopTheWork) {
  std::FILE* out = std::fopen("/dev/full", "w");
  ASSERT_NE(out, nullptr);
  std::setvbuf(out, nullptr, _IONBF, 0);
  EXPECT_NO_THROW({
    Progress progress("tuning", 3, "shapes", out);
    for (int i = 1; i <= 3; ++i) progress.update(i, "note");
  });
  std::fclose(out);
}

TEST(ProgressTest, AClosedStreamDoesNotStopTheWork) {
  const test::TemporaryFolder folder;
  std::FILE* out = std::fopen(folder.file("log").c_str(), "w");
  ASSERT_NE(out, nullptr);
  std::setvbuf(out, nullptr, _IONBF, 0);
  ::close(::fileno(out));
  EXPECT_NO_THROW({
    Progress progress("tuning", 3, "shapes", out);
    for (int i = 1; i <= 3; ++i) progress.update(i);
  });
  std::fclose(out);
}

// A terminal of some columns, and what is written to it.
class Screen {
 public:
  explicit Screen(unsigned short columns) {
    EXPECT_EQ(::openpty(&master_, &slave_, nullptr, nullptr, nullptr), 0);
    const winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(slave_, TIOCSWINSZ, &size), 0);
    out_ = ::fdopen(slave_, "w");
  }
  ~Screen() { ::close(master_); }

  std::FILE* out() { return out_; }
  std::string end() {
    std::fflush(out_);
    char text[4096];
    const ssize_t length = ::read(master_, text, sizeof text);
    std::fclose(out_);
    return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
  }

 private:
  int master_ = -1, slave_ = -1;
  std::FILE* out_ = nullptr;
};

std::string drawn(unsigned short columns, const char* term, const char* locale) {
  ::setenv("TERM", term, 1);
  ::setenv("LC_ALL", locale, 1);
  Screen screen(columns);
  {
    Progress progress("1/2 poster: denoising", 20, "steps", screen.out(), 4);
    progress.update(5, "0.12 s per step", 200);
    progress.update(20, "0.12 s per step", 0);
  }
  ::unsetenv("LC_ALL");
  return screen.end();
}

TEST(ProgressTest, ATerminalHasOneLineWithOneEstimate) {
  const std::string text = drawn(100, "xterm", "de_DE.utf8");
  EXPECT_NE(text.find("░ 4/20 steps"), text.npos) << text;
  EXPECT_NE(text.find("░ 5/20 steps, 4 min left  0.12 s per step"), text.npos) << text;
  EXPECT_EQ(text.find("left", text.find("left") + 1), text.npos) << "nothing at its end: " << text;
}

TEST(ProgressTest, ALineNeverWraps) {
  for (const unsigned short columns : {10, 20, 40, 60, 70}) {
    const std::string text = drawn(columns, "xterm", "C.UTF-8");
    EXPECT_NE(text.find("5/20"), text.npos) << text;
    size_t length = 0;
    for (const char c : text) {
      length = c == '\r' || c == '\n' ? 0 : length + ((c & 0xc0) == 0x80 ? 0 : 1);
      EXPECT_LT(length, columns) << text;
    }
  }
}

TEST(ProgressTest, TerminalsThatCannotDrawGetLines) {
  for (const auto& [term, locale] : {std::pair{"dumb", "C.UTF-8"}, {"xterm", "C"}}) {
    EXPECT_EQ(drawn(100, term, locale), "1/2 poster: denoising: 4/20 steps\r\n");
  }
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
