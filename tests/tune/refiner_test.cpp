// tune: kernels are chosen between other work, within the seconds that are given for it.
#include "tune/refiner.h"

#include <gtest/gtest.h>

#include <memory>

#include "formats/temporary_folder.h"
#include "tune/tune_support.h"

namespace octet::tune {
namespace {

using test::FakeDevice;
using test::LogLines;
using test::some_problem;

class RefinerTest : public testing::Test {
 protected:
  RefinerTest() {
    device_.disturb = [this](double us, const std::string&, int) {
      now_s_ += kRunS;
      return us;
    };
  }

  std::function<Trial(const GemmProblem&)> begin() {
    return [this](const GemmProblem& problem) {
      begun_.push_back(problem.m);
      now_s_ += kBeginS;
      return Trial{device_.measure(), {}, {}};
    };
  }
  void run(double seconds) {
    refiner_.run(seconds, begin(), [this](Refiner::Result result) {
      done_.emplace_back(result.problem.m, result.found);
    });
  }
  // Steps until nothing waits; their number.
  int run_to_the_end(double seconds) {
    int steps = 0;
    for (; refiner_.has_work() && steps < 10'000; ++steps) run(seconds);
    return steps;
  }

  static constexpr double kRunS = 1e-3, kBeginS = 2e-4;
  double now_s_ = 0;
  FakeDevice device_{{{"used", 12}, {"fastest", 10}, {"other", 11}}};
  std::vector<Candidate> candidates_ = {{"used", 5}, {"other", 3}, {"fastest", 9}};
  Refiner refiner_{[this] { return now_s_; }};
  std::vector<int64_t> begun_;
  std::vector<std::pair<int64_t, TunerResult>> done_;
};

TEST_F(RefinerTest, FindsWhatATournamentFindsWhereverItIsInterrupted) {
  for (const double seconds : {1e-4, 3e-3, 1e3}) {
    const size_t before = done_.size(), runs = device_.runs.size();
    Refiner one([this] { return now_s_; });
    one.add(some_problem(), candidates_);
    for (int step = 0; one.has_work() && step < 10'000; ++step) {
      one.run(seconds, begin(), [this](Refiner::Result result) {
        done_.emplace_back(result.problem.m, result.found);
      });
    }
    ASSERT_EQ(done_.size(), before + 1) << seconds;
    const TunerResult& found = done_.back().second;
    EXPECT_EQ(found.winner, "fastest");
    EXPECT_EQ(found.winner_us, 10);
    EXPECT_EQ(found.runner_up, "other");
    EXPECT_FALSE(found.under_load);
    EXPECT_TRUE(found.reference_us.empty());
    // The same runs in the same order, none of them twice.
    const std::vector<std::string> now(device_.runs.begin() + static_cast<std::ptrdiff_t>(runs),
                                       device_.runs.end());
    EXPECT_EQ(now.size(), device_.runs.size() / done_.size());
    EXPECT_EQ(now, std::vector<std::string>(device_.runs.begin(),
                                            device_.runs.begin() + std::ssize(now)));
  }
}

TEST_F(RefinerTest, SpendsNoMoreThanItWasGiven) {
  refiner_.add(some_problem(), candidates_);
  double given = 0;
  int idle = 0;
  while (refiner_.has_work()) {
    given += 0.5e-3;  // less than a run takes
    const double before = now_s_;
    run(0.5e-3);
    idle += now_s_ == before ? 1 : 0;
    ASSERT_LE(now_s_, given + kRunS);
    ASSERT_LT(given, 10);
  }
  EXPECT_GT(idle, 10);
  EXPECT_LE(now_s_, given);
}

TEST_F(RefinerTest, ALongRunIsPaidBack) {
  refiner_.add(some_problem(), candidates_);
  device_.disturb = [this](double us, const std::string&, int turn) {
    now_s_ += turn == 0 ? 1.0 : kRunS;  // its code is loaded
    return us;
  };
  run(0.01);
  EXPECT_GT(now_s_, 1.0);
  const double after = now_s_;
  for (int step = 0; step < 98; ++step) run(0.01);
  EXPECT_EQ(now_s_, after);
  for (int step = 0; step < 110; ++step) run(0.01);
  EXPECT_GT(now_s_, after);
}

TEST_F(RefinerTest, NothingIsSavedUpWhileNothingWaits) {
  for (int step = 0; step < 100; ++step) run(1);
  refiner_.add(some_problem(), candidates_);
  run(1e-4);
  EXPECT_EQ(now_s_, 0);
}

TEST_F(RefinerTest, TheLargestProblemComesFirstButWhatBeganIsFinished) {
  refiner_.add(some_problem(64), candidates_);
  run(2 * kRunS);
  refiner_.add(some_problem(128), candidates_);
  refiner_.add(some_problem(512), candidates_);
  refiner_.add(some_problem(256), candidates_);
  run_to_the_end(3 * kRunS);
  std::vector<int64_t> order;
  for (const auto& [m, found] : done_) order.push_back(m);
  EXPECT_EQ(order, (std::vector<int64_t>{64, 512, 256, 128}));
}

TEST_F(RefinerTest, AProblemIsMeasuredOnceAndOnlyWhereThereIsAChoice) {
  refiner_.add(some_problem(), candidates_);
  refiner_.add(some_problem(), candidates_);
  refiner_.add(some_problem(7), {{"used", 1}});
  run_to_the_end(1);
  EXPECT_EQ(done_.size(), 1u);
  refiner_.add(some_problem(), candidates_);
  EXPECT_FALSE(refiner_.has_work());
}

TEST_F(RefinerTest, WhatIsUsedStaysWhereOthersAreNoFaster) {
  device_ = FakeDevice({{"used", 10}, {"fastest", 10}, {"other", 10}});
  refiner_.add(some_problem(), candidates_);
  run_to_the_end(1);
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(done_[0].second.winner, "used");
}

TEST_F(RefinerTest, AKernelThatFailsIsLeftOut) {
  device_.disturb = [](double us, const std::string& name, int) {
    if (name == "fastest") fail("it cannot run");
    return name == "used" ? -1 : us;
  };
  const LogLines log;
  refiner_.add(some_problem(), candidates_);
  EXPECT_LT(run_to_the_end(1), 100);
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(done_[0].second.winner, "other");
  EXPECT_EQ(log.count_with("fastest is left out"), 1u) << log.all();
  EXPECT_EQ(log.count_with("used is left out"), 1u) << log.all();
  EXPECT_EQ(log.count(), 0u) << log.all();
}

TEST_F(RefinerTest, WhatHasNoMemoryIsLeftAlone) {
  const auto never = [](Refiner::Result) { FAIL(); };
  const std::vector<std::function<Trial(const GemmProblem&)>> failing = {
      [](const GemmProblem&) -> Trial { throw OutOfMemory(sentence("no memory")); },
      [](const GemmProblem&) -> Trial { throw std::bad_alloc(); },
      [](const GemmProblem&) {
        return Trial{
            [](const std::string&, int) -> double { throw OutOfMemory(sentence("no memory")); },
            {},
            {}};
      },
      [](const GemmProblem&) {
        return Trial{[](const std::string&, int) -> double { fail("every kernel fails"); }, {}, {}};
      }};
  int64_t m = 1;
  for (const auto& begin_failing : failing) {
    const LogLines log;
    refiner_.add(some_problem(++m), candidates_);
    for (int step = 0; step < 5; ++step) refiner_.run(1, begin_failing, never);
    EXPECT_FALSE(refiner_.has_work());
    EXPECT_EQ(log.count_with("is given up"), 1u) << log.all();
    EXPECT_EQ(log.count(), 0u) << log.all();
  }
}

TEST_F(RefinerTest, MemoryIsHeldOnlyWhileItMeasures) {
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = held;
  refiner_.add(some_problem(), candidates_);
  refiner_.run(
      3 * kRunS,
      [&](const GemmProblem&) {
        return Trial{[this, owned = std::exchange(held, nullptr)](const std::string& name, int) {
                       now_s_ += kRunS;
                       return name.empty() ? 0.0 : 1.0;
                     },
                     {},
                     {}};
      },
      [](Refiner::Result) {});
  EXPECT_TRUE(refiner_.has_work());
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace octet::tune
