// What the tests of tune share: log lines that are kept, a fake device, headers and plans.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "tune/planner.h"

namespace octet::tune::test {

// Collects every line of the library while it lives.
class LogLines {
 public:
  LogLines() {
    log::set_sink([this](log::Level level, std::string_view line) {
      lines_.emplace_back(level, std::string(line));
    });
  }
  ~LogLines() { log::set_sink({}); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  size_t count(log::Level lowest = log::Level::info) const {
    size_t lines = 0;
    for (const auto& [level, line] : lines_) lines += level >= lowest ? 1 : 0;
    return lines;
  }
  size_t count_with(std::string_view part) const {
    size_t lines = 0;
    for (const auto& [level, line] : lines_) lines += line.find(part) != line.npos ? 1 : 0;
    return lines;
  }
  bool has_line_breaks() const { return count_with("\n") > 0; }
  std::string all() const {
    std::string text;
    for (const auto& [level, line] : lines_) text += line + "\n";
    return text;
  }
  void clear() { lines_.clear(); }

 private:
  std::vector<std::pair<log::Level, std::string>> lines_;
};

// Runs nothing: each name takes the time it was given, and `disturb` may change it per turn.
class FakeDevice {
 public:
  explicit FakeDevice(std::map<std::string, double> times) : times_(std::move(times)) {}

  std::function<double(double us, const std::string& name, int turn)> disturb;
  std::vector<std::string> runs;  // names, in order
  std::vector<int> turns;

  Measure measure() {
    return [this](const std::string& name, int turn) {
      runs.push_back(name);
      turns.push_back(turn);
      const double us = times_.at(name);
      return disturb ? disturb(us, name, turn) : us;
    };
  }

  // `times` under load, by name; each slice is noted.
  MeasureUnderLoad measure_under_load(std::map<std::string, double> times) {
    return [this, times = std::move(times)](const std::string& name, int slice_runs) {
      slices.emplace_back(name, slice_runs);
      const double us = times.at(name);
      return disturb_load ? disturb_load(us, name) : us;
    };
  }
  std::function<double(double us, const std::string& name)> disturb_load;
  std::vector<std::pair<std::string, int>> slices;  // names and runs, in order

  int runs_of(const std::string& name) const {
    return static_cast<int>(std::count(runs.begin(), runs.end(), name));
  }

 private:
  std::map<std::string, double> times_;
};

inline PlanHeader some_header() { return {"NVIDIA H200", 132, "570.86", "13.0", "0.1.0"}; }

inline GemmProblem some_problem(int64_t m = 512) {
  return {.m = m, .n = 4608, .k = 4608, .fusion = Fusion::bias, .layout = "rows"};
}

inline GemmPlan some_plan(const std::string& kernel = "wide") {
  return {.kernel = kernel,
          .source = GemmPlan::Source::tuned,
          .us = 31.5,
          .under_load = true,
          .runner_up = "narrow",
          .runner_up_us = 33.25,
          .reference_us = {{"unquantized", 58.125}, {"quantize", 2.5}},
          .date = "2025-01-31T12:00:00Z"};
}

inline void expect_equal(const GemmPlan& a, const GemmPlan& b) {
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.us, b.us);
  EXPECT_EQ(a.under_load, b.under_load);
  EXPECT_EQ(a.runner_up, b.runner_up);
  EXPECT_EQ(a.runner_up_us, b.runner_up_us);
  EXPECT_EQ(a.reference_us, b.reference_us);
  EXPECT_EQ(a.date, b.date);
}

// The plan that a new cache on this file finds; null when there is none.
inline std::optional<GemmPlan> plan_in(const std::string& path, const GemmProblem& problem) {
  PlanCache cache(path, some_header());
  cache.load();
  const GemmPlan* plan = cache.find(problem);
  return plan == nullptr ? std::nullopt : std::optional(*plan);
}

}  // namespace octet::tune::test
