// tune: what a plan file keeps, for whom, and where it lies.
#include "tune/plan_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "formats/temporary_folder.h"
#include "tune/tune_support.h"

namespace octet::tune {
namespace {

namespace fs = std::filesystem;
using test::expect_equal;
using test::LogLines;
using test::plan_in;
using test::some_header;
using test::some_plan;
using test::some_problem;

class PlanCacheTest : public testing::Test {
 protected:
  octet::test::TemporaryFolder folder_;
  std::string path_ = folder_.file("plans.json");
  LogLines log_;
};

TEST_F(PlanCacheTest, KeepsAPlanForTheNextProcess) {
  const std::string deep = folder_.file("not/yet/there/plans.json");
  PlanCache cache(deep, some_header());
  cache.load();
  EXPECT_EQ(cache.find(some_problem()), nullptr);
  cache.store(some_problem(), some_plan());
  const auto plan = plan_in(deep, some_problem());
  ASSERT_TRUE(plan);
  expect_equal(*plan, some_plan());
  EXPECT_EQ(plan->source, GemmPlan::Source::file);
  EXPECT_FALSE(plan_in(deep, some_problem(513)));
  EXPECT_EQ(log_.count(log::Level::debug), 0u) << log_.all();
}

TEST_F(PlanCacheTest, KeepsAPlanWithoutRunnerUpAndReferences) {
  GemmPlan plan = some_plan();
  plan.runner_up = "";
  plan.runner_up_us = 0;
  plan.reference_us = {};
  PlanCache(path_, some_header()).store(some_problem(), plan);
  ASSERT_TRUE(plan_in(path_, some_problem())) << log_.all();
  expect_equal(*plan_in(path_, some_problem()), plan);
}

TEST_F(PlanCacheTest, TheFileIsWhatTheHeaderSays) {
  PlanCache(path_, some_header()).store(some_problem(), some_plan());
  const auto expected = nlohmann::json::parse(R"({
    "header": {"schema": 2, "device": "NVIDIA H200", "multiprocessors": 132, "driver": "570.86",
               "toolkit": "13.0", "library": "0.1.0"},
    "plans": {"m512 n4608 k4608 BF16+bias rows": {
       "kernel": "wide", "us": 31.5, "under_load": true,
       "runner_up": "narrow", "runner_up_us": 33.25,
       "reference_us": {"quantize": 2.5, "unquantized": 58.125},
       "date": "2025-01-31T12:00:00Z"}}})");
  EXPECT_EQ(nlohmann::json::parse(folder_.read("plans.json")), expected);
}

TEST_F(PlanCacheTest, StoringMergesAndOursWins) {
  PlanCache one(path_, some_header());
  PlanCache two(path_, some_header());
  one.load();
  two.load();
  one.store(some_problem(1), some_plan("one"));
  one.store(some_problem(2), some_plan("one"));
  two.store(some_problem(2), some_plan("two"));
  two.store(some_problem(3), some_plan("two"));
  EXPECT_EQ(two.find(some_problem(1))->kernel, "one");  // seen while storing
  one.store(some_problem(4), some_plan("one"));
  EXPECT_EQ(plan_in(path_, some_problem(1))->kernel, "one");
  EXPECT_EQ(plan_in(path_, some_problem(2))->kernel, "two");  // the later of both
  EXPECT_EQ(plan_in(path_, some_problem(3))->kernel, "two");
  EXPECT_EQ(plan_in(path_, some_problem(4))->kernel, "one");
}

TEST_F(PlanCacheTest, AForeignFileIsIgnoredAndReplaced) {
  std::vector<PlanHeader> foreign(5, some_header());
  foreign[0].device = "NVIDIA L4";
  foreign[1].multiprocessors = 131;
  foreign[2].driver = "571";
  foreign[3].toolkit = "12.6";
  foreign[4].library = "0.2.0";
  for (const PlanHeader& header : foreign) {
    PlanCache(path_, header).store(some_problem(1), some_plan());
    log_.clear();
    PlanCache cache(path_, some_header());
    cache.load();
    EXPECT_EQ(cache.find(some_problem(1)), nullptr);
    EXPECT_EQ(log_.count(log::Level::debug), 1u) << log_.all();
    EXPECT_EQ(log_.count(log::Level::warning), 0u) << log_.all();  // an update is no fault
    EXPECT_EQ(log_.count_with(", here "), 1u) << log_.all();
    cache.store(some_problem(2), some_plan());
    EXPECT_EQ(log_.count(log::Level::debug), 1u) << log_.all();
    EXPECT_FALSE(plan_in(path_, some_problem(1)));
    EXPECT_TRUE(plan_in(path_, some_problem(2)));
  }
}

TEST_F(PlanCacheTest, AnotherSchemaIsForeignWhateverItsMembers) {
  folder_.write("plans.json", R"({"header": {"schema": 3, "gpu": []}, "winners": 7})");
  EXPECT_FALSE(plan_in(path_, some_problem()));
  EXPECT_EQ(log_.count(log::Level::debug), 1u);
  EXPECT_EQ(log_.count_with("made elsewhere: schema 3, here 2"), 1u) << log_.all();
}

// Those of before were chosen by single runs.
TEST_F(PlanCacheTest, PlansOfTheFirstSchemaAreMeasuredAgain) {
  PlanCache(path_, some_header()).store(some_problem(), some_plan());
  auto file = nlohmann::json::parse(folder_.read("plans.json"));
  file["header"]["schema"] = 1;
  for (auto& plan : file["plans"]) plan.erase("under_load");
  folder_.write("plans.json", file.dump());
  EXPECT_FALSE(plan_in(path_, some_problem()));
  EXPECT_EQ(log_.count_with("made elsewhere: schema 1, here 2"), 1u) << log_.all();
  EXPECT_EQ(log_.count(log::Level::warning), 0u) << log_.all();
}

// A driver may report anything as the name of a device.
TEST_F(PlanCacheTest, AStrangeDeviceNameStillWorks) {
  PlanHeader header = some_header();
  header.device = "G\xff\"\\\n\u00fc" + std::string(1000, 'x');
  header.multiprocessors = -1;
  PlanCache(path_, header).store(some_problem(), some_plan());
  PlanCache again(path_, header);
  again.load();
  EXPECT_NE(again.find(some_problem()), nullptr);
  EXPECT_EQ(log_.count(log::Level::debug), 0u) << log_.all();
}

TEST_F(PlanCacheTest, APlanThatNoReaderWouldAcceptIsNotWritten) {
  PlanCache cache(path_, some_header());
  std::vector<GemmPlan> bad(9, some_plan());
  bad[0].kernel = "";
  bad[1].kernel = "two\nlines";
  bad[2].us = 0;
  bad[3].us = std::numeric_limits<double>::quiet_NaN();
  bad[4].runner_up_us = -1;
  bad[5].date = "yesterday";
  bad[6].reference_us["late"] = std::numeric_limits<double>::infinity();
  bad[7].kernel = std::string(kMaxPlanTextBytes + 1, 'x');
  for (int i = 0; i < 20; ++i) bad[8].reference_us[fmt::format("r{}", i)] = 1;
  for (const GemmPlan& plan : bad) {
    PlanCache fresh(path_, some_header());
    log_.clear();
    fresh.store(some_problem(), plan);
    EXPECT_EQ(log_.count(log::Level::warning), 1u) << log_.all();
    EXPECT_FALSE(log_.has_line_breaks());
    EXPECT_FALSE(fs::exists(path_));
  }
}

TEST_F(PlanCacheTest, AFullFileForgetsTheOldest) {
  Plans plans;
  for (size_t i = 0; i < kMaxPlans; ++i) {
    GemmPlan plan = some_plan();
    plan.date = i == 77 ? "2024-01-01T00:00:00Z" : "2025-01-31T12:00:00Z";
    plans[some_problem(static_cast<int64_t>(i)).to_string()] = plan;
  }
  folder_.write("plans.json", plans_to_text(some_header(), plans));
  GemmPlan oldest = some_plan();
  oldest.date = "2000-01-01T00:00:00Z";
  PlanCache(path_, some_header()).store(some_problem(1'000'000), oldest);
  PlanCache cache(path_, some_header());
  cache.load();
  EXPECT_NE(cache.find(some_problem(1'000'000)), nullptr);  // what was just stored stays
  EXPECT_EQ(cache.find(some_problem(77)), nullptr);
  EXPECT_NE(cache.find(some_problem(76)), nullptr);
  EXPECT_EQ(log_.count(log::Level::debug), 0u) << log_.all();
}

TEST_F(PlanCacheTest, AnEmptyPathKeepsNothing) {
  PlanCache cache("", some_header());
  cache.load();
  cache.store(some_problem(), some_plan());
  EXPECT_EQ(cache.find(some_problem()), nullptr);
  EXPECT_EQ(log_.count(log::Level::debug), 0u) << log_.all();
}

// Root may write anywhere, so it is a regular file in the way that plays the read-only folder.
TEST_F(PlanCacheTest, AFolderThatCannotBeWrittenIsToldOnce) {
  std::string path = folder_.file("read_only/plans.json");
  fs::create_directory(folder_.file("read_only"));
  if (::geteuid() != 0) {
    ::chmod(folder_.file("read_only").c_str(), 0555);
  } else {
    folder_.write("read_only/file", "");
    path = folder_.file("read_only/file/plans.json");
  }
  PlanCache cache(path, some_header());
  cache.load();
  for (int64_t m = 1; m < 5; ++m) cache.store(some_problem(m), some_plan());
  EXPECT_EQ(log_.count(log::Level::debug), 1u) << log_.all();
  EXPECT_EQ(log_.count(log::Level::warning), 1u) << log_.all();
  ::chmod(folder_.file("read_only").c_str(), 0755);
}

TEST_F(PlanCacheTest, ALockThatCannotBeTakenIsToldOnce) {
  fs::create_directory(path_ + ".lock");
  PlanCache cache(path_, some_header());
  for (int64_t m = 1; m < 5; ++m) cache.store(some_problem(m), some_plan());
  EXPECT_EQ(log_.count(log::Level::warning), 1u) << log_.all();
  EXPECT_FALSE(fs::exists(path_));
  fs::remove(path_ + ".lock");
  cache.store(some_problem(5), some_plan());  // and saves what is waiting as soon as it can
  for (int64_t m = 1; m <= 5; ++m) EXPECT_TRUE(plan_in(path_, some_problem(m))) << m;
}

TEST_F(PlanCacheTest, ALockThatIsNeverGivenBackDoesNotStopTheRun) {
  const int fd = ::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  PlanCache cache(path_, some_header(), std::chrono::milliseconds(30));
  for (int64_t m = 1; m < 5; ++m) cache.store(some_problem(m), some_plan());
  EXPECT_EQ(log_.count(log::Level::debug), 1u) << log_.all();
  EXPECT_EQ(log_.count_with("another process has held"), 1u) << log_.all();
  EXPECT_FALSE(fs::exists(path_));
  ::close(fd);
  cache.store(some_problem(5), some_plan());
  for (int64_t m = 1; m <= 5; ++m) EXPECT_TRUE(plan_in(path_, some_problem(m))) << m;
}

TEST(PlanFileName, IsSafe) {
  EXPECT_EQ(plan_file_name("NVIDIA H200"), "nvidia_h200.json");
  EXPECT_EQ(plan_file_name("NVIDIA GeForce RTX 4090 (Laptop GPU)"),
            "nvidia_geforce_rtx_4090_laptop_gpu.json");
  EXPECT_EQ(plan_file_name("../../etc/passwd"), "etc_passwd.json");
  EXPECT_EQ(plan_file_name(""), "device.json");
  EXPECT_EQ(plan_file_name("\xff/\n"), "device.json");
  EXPECT_EQ(plan_file_name(std::string(1000, 'x')).size(), 105u);
}

// Sets variables for one test and puts the old values back.
class CacheFolder : public testing::Test {
 protected:
  static constexpr const char* kNames[] = {"OCTET_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};

  CacheFolder() {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.push_back(value ? std::optional<std::string>(value) : std::nullopt);
      ::unsetenv(name);
    }
  }
  ~CacheFolder() override {
    for (size_t i = 0; i < before_.size(); ++i) {
      if (before_[i]) {
        ::setenv(kNames[i], before_[i]->c_str(), 1);
      } else {
        ::unsetenv(kNames[i]);
      }
    }
  }
  std::vector<std::optional<std::string>> before_;
  LogLines log_;
};

TEST_F(CacheFolder, ComesFromTheFirstVariableThatNamesOne) {
  ::setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(env::cache_dir(), "/home/ada/.cache/octet");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(env::cache_dir(), "/home/ada/.cache/octet");
  ::setenv("XDG_CACHE_HOME", "/var/ada", 1);
  EXPECT_EQ(env::cache_dir(), "/var/ada/octet");
  ::setenv("OCTET_CACHE_DIR", "/fast", 1);
  EXPECT_EQ(env::cache_dir(), "/fast");
  ::setenv("OCTET_CACHE_DIR", "", 1);
  EXPECT_EQ(env::cache_dir(), "/var/ada/octet");
  EXPECT_EQ(default_plan_folder(), "/var/ada/octet/plans");
  EXPECT_EQ(default_plan_path(some_header()), "/var/ada/octet/plans/nvidia_h200.json");
  EXPECT_EQ(log_.count(log::Level::debug), 0u) << log_.all();
}

TEST_F(CacheFolder, MayBeMissing) {
  EXPECT_EQ(env::cache_dir(), std::nullopt);
  EXPECT_EQ(default_plan_path(some_header()), "");
  EXPECT_EQ(log_.count(log::Level::debug), 1u) << log_.all();
  EXPECT_EQ(log_.count(log::Level::info), 0u) << log_.all();
}

TEST_F(CacheFolder, AHomeThatCannotBeWrittenDoesNotStopTheRun) {
  const octet::test::TemporaryFolder folder;
  for (const std::string& home : {std::string("/proc/nobody"), folder.write("home", "a file")}) {
    ::setenv("HOME", home.c_str(), 1);
    log_.clear();
    PlanCache cache(default_plan_path(some_header()), some_header());
    cache.load();
    for (int64_t m = 1; m < 5; ++m) cache.store(some_problem(m), some_plan());
    EXPECT_EQ(log_.count(log::Level::warning), 1u) << log_.all();
  }
}

}  // namespace
}  // namespace octet::tune
