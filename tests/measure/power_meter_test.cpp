// What is made of the readings of a gauge that was made up.
#include "measure/power_meter.h"

#include <gtest/gtest.h>

#include <atomic>

#include "ref/ref_backend.h"

namespace octet::measure {
namespace {

// 100, 300, 300, ... watts; a counter that grows by `joules` each time that it is read.
class MadeUpGauge final : public PowerGauge {
 public:
  MadeUpGauge(std::atomic<int>& reads, double joules) : reads_(reads), joules_(joules) {}
  PowerReading read() override {
    const bool first = reads_++ == 0;
    return {.watts = first ? 100.0 : 300.0, .mhz = 1500, .celsius = 60, .power_capped = !first};
  }
  double joules() override { return counted_ += joules_; }
  double limit_watts() override { return 700; }

 private:
  std::atomic<int>& reads_;
  double joules_, counted_ = 0;
};

TEST(PowerMeter, SamplesFromStartToStop) {
  std::atomic<int> reads = 0;
  PowerMeter meter(std::make_unique<MadeUpGauge>(reads, 0));
  meter.start();
  while (reads < 2) std::this_thread::yield();
  const PowerUse use = meter.stop();
  const int after = reads;
  ASSERT_GE(use.samples, 2);
  EXPECT_EQ(use.samples, after);
  EXPECT_TRUE(use.is_known());
  EXPECT_NEAR(use.mean_w, (100.0 + 300.0 * (after - 1)) / after, 1e-9);
  EXPECT_EQ(use.max_w, 300);
  EXPECT_EQ(use.limit_w, 700);
  EXPECT_NEAR(use.mean_mhz, 1500, 1e-9);
  EXPECT_EQ(use.max_celsius, 60);
  EXPECT_NEAR(use.power_capped, double(after - 1) / after, 1e-9);
  EXPECT_EQ(use.too_hot, 0);
  EXPECT_GT(use.joules, 0) << "power times time, where the device does not count";

  reads = 0;
  meter.start();  // anew
  while (reads < 1) std::this_thread::yield();
  EXPECT_EQ(meter.stop().samples, reads);
}

TEST(PowerMeter, TheDevicesOwnCounterIsBelievedOfLongRuns) {
  std::atomic<int> reads = 0;
  const auto run = [&](double counted_from_s) {
    reads = 0;
    PowerMeter meter(std::make_unique<MadeUpGauge>(reads, 5000), counted_from_s);
    meter.start();
    while (reads < 1) std::this_thread::yield();
    return meter.stop();
  };
  const PowerUse counted = run(0);
  EXPECT_EQ(counted.joules, 5000);
  EXPECT_GT(counted.mean_w, 300) << "joules by time";
  const PowerUse sampled = run(3600);
  EXPECT_NE(sampled.joules, 5000);
  EXPECT_LE(sampled.mean_w, 300);
}

TEST(PowerMeter, WithoutAGaugeKnowsNothing) {
  const auto backend = make_ref_backend(1);
  PowerMeter meter(*backend);
  meter.start();
  const PowerUse use = meter.stop();
  EXPECT_FALSE(use.is_known());
  EXPECT_EQ(use.joules, 0);
}

}  // namespace
}  // namespace octet::measure
