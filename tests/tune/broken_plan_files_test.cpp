// tune: plan files that are damaged, hostile or no files never break a run, and cost one log line.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "formats/temporary_folder.h"
#include "tune/planner.h"
#include "tune/tune_support.h"

namespace octet::tune {
namespace {

namespace fs = std::filesystem;
using test::FakeDevice;
using test::LogLines;
using test::some_header;
using test::some_plan;
using test::some_problem;

class BrokenPlanFiles : public testing::Test {
 protected:
  // One process that needs the plan of a problem, under whatever file there is.
  GemmPlan run(TuneMode mode = TuneMode::missing) {
    FakeDevice device({{"wide", 31.5}, {"narrow", 33.25}});
    Planner planner(PlanCache(path_, some_header()), mode);
    return planner.choose(some_problem(), {{"narrow", 1}, {"wide", 2}}, [&device] {
      return Trial{device.measure(), {}};
    });
  }

  std::string good_text() {
    return plans_to_text(some_header(), {{some_problem().to_string(), some_plan()}});
  }

  // Refused with one line when it is only read, and when the file is replaced as well.
  void expect_ignored(const std::string& text, const std::string& about) {
    folder_.write("plans.json", text);
    log_.clear();
    EXPECT_EQ(run(TuneMode::off).source, GemmPlan::Source::estimate) << about;
    EXPECT_EQ(log_.count(log::Level::debug), 1u) << about << "\n" << log_.all();
    EXPECT_EQ(folder_.read("plans.json"), text) << about;
    log_.clear();
    EXPECT_EQ(run().source, GemmPlan::Source::tuned) << about;
    EXPECT_EQ(log_.count(log::Level::debug), 1u) << about << "\n" << log_.all();
    EXPECT_FALSE(log_.has_line_breaks()) << log_.all();
    EXPECT_EQ(run(TuneMode::off).source, GemmPlan::Source::file) << about;
  }

  octet::test::TemporaryFolder folder_;
  std::string path_ = folder_.file("plans.json");
  LogLines log_;
};

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const size_t at = text.find(part);
  EXPECT_NE(at, text.npos) << part;
  return at == text.npos ? text : text.replace(at, part.size(), by);
}

TEST_F(BrokenPlanFiles, TheGoodFileIsUsed) {
  folder_.write("plans.json", good_text());
  const GemmPlan plan = run();
  EXPECT_EQ(plan.source, GemmPlan::Source::file);
  test::expect_equal(plan, some_plan());
  EXPECT_EQ(log_.count(log::Level::debug), 0u) << log_.all();
}

// The last byte is the line feed, without which the file is still whole.
TEST_F(BrokenPlanFiles, CutOffAtEveryByte) {
  const std::string whole = good_text();
  for (size_t length = 0; length + 1 < whole.size(); ++length) {
    folder_.write("plans.json", whole.substr(0, length));
    log_.clear();
    EXPECT_EQ(run(TuneMode::off).source, GemmPlan::Source::estimate) << length;
    EXPECT_EQ(log_.count(log::Level::debug), 1u) << length << "\n" << log_.all();
    EXPECT_EQ(log_.count(log::Level::warning), 1u) << length << "\n" << log_.all();
  }
  expect_ignored("", "an empty file");
  expect_ignored(whole.substr(0, whole.size() / 2), "half a file");
}

// A flipped bit may leave a good file (another digit), so that the choice alone is certain: a
// kernel that was offered, after at most one line.
TEST_F(BrokenPlanFiles, RandomBytesFlipped) {
  std::mt19937 random(7);
  size_t told = 0;
  for (int attempt = 0; attempt < 1500; ++attempt) {
    std::string text = good_text();
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips) {
      text[random() % text.size()] ^= static_cast<char>(1 + random() % 255);
    }
    folder_.write("plans.json", text);
    log_.clear();
    const GemmPlan plan = run(TuneMode::off);
    EXPECT_TRUE(plan.kernel == "wide" || plan.kernel == "narrow") << plan.kernel;
    const size_t lines = log_.count(log::Level::debug);
    EXPECT_LE(lines, 1u) << log_.all();
    EXPECT_FALSE(log_.has_line_breaks()) << log_.all();
    if (lines == 0 && plan.source == GemmPlan::Source::estimate) {
      EXPECT_EQ(text.find(some_problem().to_string()), text.npos) << text;  // the flip hit the key
    }
    told += lines;
  }
  EXPECT_GT(told, 1000u);
}

TEST_F(BrokenPlanFiles, WrongMembersTypesAndRanges) {
  const std::string good = good_text();
  const std::pair<const char*, const char*> edits[] = {
      {"\"us\": 31.5", "\"us\": \"31.5\""},
      {"\"us\": 31.5", "\"us\": null"},
      {"\"us\": 31.5", "\"us\": true"},
      {"\"us\": 31.5", "\"us\": [31.5]"},
      {"\"us\": 31.5", "\"us\": 0"},
      {"\"us\": 31.5", "\"us\": -31.5"},
      {"\"us\": 31.5", "\"us\": 1e13"},
      {"\"us\": 31.5", "\"us\": 1e999"},
      {"\"us\": 31.5", "\"us\": 18446744073709551615"},
      {"\"us\": 31.5", "\"us\": 123456789012345678901234567890"},
      {"\"us\": 31.5", "\"us\": NaN"},
      {"\"us\": 31.5", "\"us\": 31.5, \"us\": 31.5"},
      {"\"us\": 31.5", "\"us\": 31.5, \"extra\": 1"},
      {"\"us\": 31.5", "\"microseconds\": 31.5"},
      {"\"under_load\": true", "\"under_load\": 1"},
      {"\"under_load\": true", "\"under_load\": \"true\""},
      {"\"under_load\": true,", ""},
      {"\"kernel\": \"wide\"", "\"kernel\": \"\""},
      {"\"kernel\": \"wide\"", "\"kernel\": 3"},
      {"\"kernel\": \"wide\"", "\"kernel\": \"wi\\nde\""},
      {"\"kernel\": \"wide\"", "\"kernel\": \"w\\u0000\""},
      {"\"kernel\": \"wide\"", "\"kernel\": \"\\u001b[2J\""},
      {"\"runner_up\": \"narrow\"", "\"runner_up\": \"\""},
      {"\"runner_up\": \"narrow\"", "\"runner_up\": null"},
      {"\"runner_up_us\": 33.25", "\"runner_up_us\": 0"},
      {"2025-01-31T12:00:00Z", "2025-01-31 12:00:00"},
      {"2025-01-31T12:00:00Z", "2025-01-31T12:00:00Z "},
      {"\"quantize\": 2.5", "\"quantize\": -2.5"},
      {"\"quantize\": 2.5", "\"\": 2.5"},
      {"\"quantize\": 2.5", "\"quantize\": {}"},
      {"\"schema\": 2", "\"schema\": \"2\""},
      {"\"schema\": 2", "\"schema\": 2.0"},
      {"\"schema\": 2", "\"schema\": 2, \"more\": 1"},
      {"\"schema\": 2", "\"schemata\": 2"},
      {"\"multiprocessors\": 132", "\"multiprocessors\": -132"},
      {"\"multiprocessors\": 132", "\"multiprocessors\": 132.0"},
      {"\"multiprocessors\": 132", "\"multiprocessors\": 99999999999"},
      {"\"device\": \"NVIDIA H200\"", "\"device\": []"},
      {"\"header\"", "\"head\""},
      {"\"plans\"", "\"plan\""},
      {"m512", "m\\u0007512"},
  };
  for (const auto& [part, by] : edits) {
    expect_ignored(replaced(good, part, by), std::string(part) + " -> " + by);
  }
}

TEST_F(BrokenPlanFiles, WrongAsAWhole) {
  const std::string good = good_text();
  std::string nested = "{\"header\": ";
  for (int i = 0; i < 100'000; ++i) nested += '[';
  Plans too_many;
  for (size_t i = 0; i <= kMaxPlans; ++i) too_many[fmt::format("m{}", i)] = some_plan();
  GemmPlan compared = some_plan();
  for (size_t i = 0; i <= kMaxPlanReferences; ++i) compared.reference_us[fmt::format("r{}", i)] = 1;
  const std::string plans = good.substr(good.find("\"plans\""));
  const std::string texts[] = {
      "[]",
      "7",
      "null",
      "{}",
      "\xff\xfe",
      std::string(100, '\0'),
      nested,
      good + good,
      good + "x",
      replaced(good, plans, "\"plans\": []}"),
      replaced(good, plans, "\"plans\": 1}"),
      plans_to_text(some_header(), too_many),
      plans_to_text(some_header(), {{some_problem().to_string(), compared}}),
      replaced(good, "\"wide\"", "\"" + std::string(kMaxPlanTextBytes + 1, 'w') + "\""),
      replaced(good, "m512", std::string(kMaxPlanTextBytes + 1, 'm')),
  };
  for (const std::string& text : texts) expect_ignored(text, text.substr(0, 60));
}

TEST_F(BrokenPlanFiles, AFileBeyondAllMeasureIsNotReadWhole) {
  folder_.write("plans.json", good_text());
  fs::resize_file(path_, uint64_t{1} << 40);  // sparse: as long as this, with nothing in it
  EXPECT_EQ(run(TuneMode::off).source, GemmPlan::Source::estimate);
  EXPECT_EQ(log_.count(log::Level::debug), 1u);
  EXPECT_EQ(log_.count_with("is longer than"), 1u) << log_.all();
}

// None of these can be replaced by a file, or should be: one line for the whole run, nothing kept.
TEST_F(BrokenPlanFiles, NoFileAtAll) {
  const auto expect_left_alone = [this](const std::string& about) {
    for (const TuneMode mode : {TuneMode::off, TuneMode::missing, TuneMode::all}) {
      log_.clear();
      EXPECT_EQ(run(mode).kernel, mode == TuneMode::off ? "narrow" : "wide") << about;
      EXPECT_EQ(log_.count(log::Level::debug), 1u) << about << "\n" << log_.all();
      EXPECT_EQ(log_.count(log::Level::warning), 1u) << about << "\n" << log_.all();
    }
  };
  fs::create_directory(path_);
  expect_left_alone("a folder");
  EXPECT_TRUE(fs::is_directory(path_));
  fs::remove(path_);

  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_left_alone("a pipe that nobody writes");
  EXPECT_TRUE(fs::is_fifo(path_));
  fs::remove(path_);

  fs::create_symlink("plans.json", path_);
  expect_left_alone("a link to itself");
  fs::remove(path_);

  const std::string path = path_;
  path_ = folder_.write("file", "") + "/plans.json";
  expect_left_alone("below a file");
  path_ = path;

  if (::geteuid() != 0) {  // root may read everything
    folder_.write("plans.json", good_text());
    ::chmod(path_.c_str(), 0);
    expect_left_alone("without permission");
    ::chmod(path_.c_str(), 0600);
    EXPECT_EQ(folder_.read("plans.json"), good_text());
  }
}

}  // namespace
}  // namespace octet::tune
