#include "api/energy_count.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "cpu/cpu_backend.h"

namespace octet::api {
namespace {

// Counts as it is told, and fails when there is nothing left to tell.
class ToldGauge final : public PowerGauge {
 public:
  explicit ToldGauge(std::vector<double> told) : told_(std::move(told)) {}
  PowerReading read() override { return {}; }
  double joules() override {
    check(next_ < told_.size(), "the counter is gone");
    return told_[next_++];
  }
  double limit_watts() override { return 0; }

 private:
  std::vector<double> told_;
  size_t next_ = 0;
};

PowerGauges gauges(std::initializer_list<std::vector<double>> each) {
  PowerGauges made;
  for (const std::vector<double>& told : each) made.push_back(std::make_unique<ToldGauge>(told));
  return made;
}

TEST(EnergyCount, CountsFromItsBeginning) {
  EnergyCount counted(gauges({{1000, 1000, 1300.5, 900}}));
  EXPECT_EQ(counted.joules(), 0);
  EXPECT_EQ(counted.joules(), 300.5);
  EXPECT_EQ(counted.joules(), 0) << "a counter that began anew";
  EXPECT_EQ(counted.joules(), 0) << "and one that fails";
}

TEST(EnergyCount, DoesNotKnowWhatNothingCounts) {
  EXPECT_EQ(EnergyCount(gauges({{0, 500}})).joules(), 0) << "unknown at first";
  EXPECT_EQ(EnergyCount(gauges({{}})).joules(), 0);
  EXPECT_EQ(EnergyCount({}).joules(), 0);
  std::vector<std::unique_ptr<Backend>> cpu;
  cpu.push_back(make_cpu_backend({.threads = 1}));
  EXPECT_EQ(EnergyCount(gauges_of(cpu)).joules(), 0);
}

TEST(EnergyCount, AddsDevices) {
  EXPECT_EQ(EnergyCount(gauges({{1000, 1100}, {50, 75}})).joules(), 125);
  EXPECT_EQ(EnergyCount(gauges({{1000, 1100}, {}})).joules(), 0) << "half of it is no answer";
}

}  // namespace
}  // namespace octet::api
