// base: checked arithmetic, progress, environment variables.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

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
