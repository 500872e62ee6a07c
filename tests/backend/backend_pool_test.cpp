// The threads of the host that belong to a backend.
#include <filesystem>

#include "base/thread_pool.h"
#include "support.h"

namespace octet::test {
namespace {

int64_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(BackendPool, HasTheThreadsThatWereAskedFor) {
  const auto cpu = make_cpu_backend({.threads = 3});
  EXPECT_EQ(cpu->pool().threads(), 3);
  EXPECT_EQ(cpu->threads(), 3);
  const auto ref = make_ref_backend(2);
  EXPECT_EQ(ref->pool().threads(), 2);
  EXPECT_EQ(ref->threads(), 1);
  EXPECT_EQ(&ref->pool(), &ref->pool());
}

TEST(BackendPool, StartsNothingWhereNobodyAsks) {
  const int64_t before = threads_of_this_process();
  const auto ref = make_ref_backend(4);
  EXPECT_LE(threads_of_this_process(), before);
  ref->pool();
  EXPECT_GE(threads_of_this_process(), 4);
}

TEST(BackendPool, ThatCannotBeMadeIsAnError) {
  EXPECT_THROW(make_ref_backend(most_threads() + 1)->pool(), Error);
}

}  // namespace
}  // namespace octet::test
