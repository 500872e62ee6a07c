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

EnergyCount count(std::vector<double> told) {
  return EnergyCount(std::make_unique<ToldGauge>(std::move(told)));
}

TEST(EnergyCount, CountsFromItsBeginning) {
  EnergyCount counted = count({1000, 1000, 1300.5, 900});
  EXPECT_EQ(counted.joules(), 0);
  EXPECT_EQ(counted.joules(), 300.5);
  EXPECT_EQ(counted.joules(), 0) << "a counter that began anew";
  EXPECT_EQ(counted.joules(), 0) << "and one that fails";
}

TEST(EnergyCount, DoesNotKnowWhatNothingCounts) {
  EXPECT_EQ(count({0, 500}).joules(), 0) << "unknown at first";
  EXPECT_EQ(count({}).joules(), 0);
  EXPECT_EQ(EnergyCount(nullptr).joules(), 0);
  const auto cpu = make_cpu_backend({.threads = 1});
  EXPECT_EQ(EnergyCount(gauge_of(*cpu)).joules(), 0);
}

}  // namespace
}  // namespace octet::api
