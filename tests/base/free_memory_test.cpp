// base: what control groups leave of the machine's memory.
#include "base/free_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMount2 =
    "22 1 0:21 / /proc rw - proc proc rw\n"
    "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kMount1 =
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:7 master:2 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

class FreeMemoryOf : public testing::Test {
 protected:
  FreeMemoryOf() { write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable:    4000 kB\n"); }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_.file(name)).parent_path());
    folder_.write(name, text);
  }
  void group2(const std::string& path, const std::string& limit, const std::string& used,
              const std::string& inactive = "0", const std::string& active = "0") {
    const std::string at = "sys/fs/cgroup" + path + "/";
    write(at + "memory.max", limit + "\n");
    write(at + "memory.current", used + "\n");
    write(at + "memory.stat",
          "anon 12\ninactive_file " + inactive + "\nactive_file " + active + "\n");
  }
  double bytes() const { return free_memory(folder_.path()).value_or(FreeMemory{-1}).bytes; }
  bool is_limited() const { return free_memory(folder_.path())->is_limited; }

  TemporaryFolder folder_;
};

TEST_F(FreeMemoryOf, AMachineWithoutGroups) {
  EXPECT_EQ(bytes(), 4000 * 1024);
  EXPECT_FALSE(is_limited());
  fs::remove_all(folder_.file("proc"));
  EXPECT_FALSE(free_memory(folder_.path()));
}

TEST_F(FreeMemoryOf, AGroupOfVersion2) {
  write("proc/self/cgroup", "0::/user.slice/job\n");
  write("proc/self/mountinfo", kMount2);
  EXPECT_EQ(bytes(), 4000 * 1024) << "a group without files";
  group2("/user.slice/job", "max", "500000");
  EXPECT_EQ(bytes(), 4000 * 1024);
  group2("/user.slice/job", "1000000", "900000", "250000", "50000");
  EXPECT_EQ(bytes(), 400000) << "cached files are free";
  EXPECT_TRUE(is_limited());
  group2("/user.slice/job", "1000000", "1200000");
  EXPECT_EQ(bytes(), 0);
  group2("/user.slice/job", "9000000", "0");
  EXPECT_EQ(bytes(), 4000 * 1024) << "the machine has less";
  EXPECT_FALSE(is_limited());
}

TEST_F(FreeMemoryOf, AGroupInsideOfOthers) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("proc/self/mountinfo", kMount2);
  group2("/a", "800000", "100000");
  group2("/a/b", "600000", "200000");
  group2("/a/b/c", "max", "0");
  EXPECT_EQ(bytes(), 400000);
  group2("/a/b", "max", "200000");
  EXPECT_EQ(bytes(), 700000);
  group2("/other", "1", "0");
  EXPECT_EQ(bytes(), 700000);
}

TEST_F(FreeMemoryOf, AContainer) {
  group2("", "1000000", "300000");  // its group is the top of what it sees
  write("proc/self/mountinfo", kMount2);
  for (const char* group : {"0::/\n", "0::/../../elsewhere\n"}) {
    write("proc/self/cgroup", group);
    EXPECT_EQ(bytes(), 700000) << group;
  }
  // The path is the host's, and so is the mount's.
  write("proc/self/cgroup", "0::/docker/abc/inner\n");
  write("proc/self/mountinfo",
        "30 1 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
  group2("/inner", "600000", "100000");
  EXPECT_EQ(bytes(), 500000);
}

TEST_F(FreeMemoryOf, AMountPointWithASpace) {
  write("proc/self/cgroup", "0::/\n");
  write("proc/self/mountinfo", "30 1 0:26 / /control\\040groups rw - cgroup2 cgroup2 rw\n");
  write("control groups/memory.max", "5000");
  write("control groups/memory.current", "1000");
  EXPECT_EQ(bytes(), 4000);
}

TEST_F(FreeMemoryOf, AGroupOfVersion1) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/box/job\n1:cpu,cpuacct:/box\n0::/\n");
  write("proc/self/mountinfo", kMount1);
  const std::string at = "sys/fs/cgroup/memory/";
  write(at + "memory.limit_in_bytes", "9223372036854771712\n");
  write(at + "memory.usage_in_bytes", "7000\n");
  EXPECT_EQ(bytes(), 4000 * 1024);
  write(at + "box/memory.limit_in_bytes", "1000000\n");
  write(at + "box/memory.usage_in_bytes", "600000\n");
  write(at + "box/memory.stat",
        "inactive_file 1\ntotal_inactive_file 60000\ntotal_active_file 40000\n");
  EXPECT_EQ(bytes(), 500000);
  EXPECT_TRUE(is_limited());
  write(at + "box/job/memory.limit_in_bytes", "300000\n");
  write(at + "box/job/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(bytes(), 200000);
}

TEST_F(FreeMemoryOf, NonsenseIsNoLimit) {
  write("proc/self/mountinfo",
        "\n - \nx\n30 1 0:26 / /sys\\9z rw - cgroup2\n" + std::string(kMount2));
  for (const char* group : {"", ":::", "0::", "0::a\\0", "memory:memory\n"}) {
    write("proc/self/cgroup", group);
    EXPECT_EQ(bytes(), 4000 * 1024) << group;
  }
  write("proc/self/cgroup", "0::/job\n");
  group2("/job", "many", "few", "none");
  EXPECT_EQ(bytes(), 4000 * 1024);
}

TEST(FreeMemory, MoreThanThereIsIsRefused) {
  check_free_memory("a byte", 1);
  EXPECT_ERROR_WITH(check_free_memory("all of it", 1e18), "all of it needs about 1000000000.0 GB");
}

}  // namespace
}  // namespace octet::test
