#include "server/service/fair_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "server/made_jobs.h"

namespace octet::server {
namespace {

// The ids in the order in which they are taken.
std::string taken(FairQueue& queue) {
  std::string ids;
  while (const auto job = queue.pop()) ids += (ids.empty() ? "" : " ") + job->id();
  return ids;
}

TEST(FairQueue, TakesJobsOfOneKeyInTheirOrder) {
  FairQueue queue;
  for (const char* id : {"a", "b", "c"}) queue.push(made_job(id), 1);
  EXPECT_EQ(queue.size(), 3);
  EXPECT_EQ(queue.work(), 3);
  EXPECT_EQ(taken(queue), "a b c");
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(queue.work(), 0);
}

TEST(FairQueue, DelaysAnotherKeyByOneJobAtMost) {
  FairQueue queue;
  for (int i = 0; i < 5; ++i) queue.push(made_job("x" + std::to_string(i), "busy"), 10);
  EXPECT_EQ(queue.pop()->id(), "x0");
  queue.push(made_job("y", "other"), 10);
  EXPECT_EQ(taken(queue), "y x1 x2 x3 x4");
}

TEST(FairQueue, SharesByWork) {
  FairQueue queue;
  // One of the large jobs is as much as three of the small ones.
  for (int i = 0; i < 2; ++i) queue.push(made_job("L" + std::to_string(i), "a"), 30);
  for (int i = 0; i < 6; ++i) queue.push(made_job("s" + std::to_string(i), "b"), 10);
  EXPECT_EQ(taken(queue), "L0 s0 s1 s2 L1 s3 s4 s5");
}

TEST(FairQueue, GivesAKeyOfWeightTwoTwiceAsMuch) {
  FairQueue queue;
  for (int i = 0; i < 4; ++i) queue.push(made_job("h" + std::to_string(i), "heavy"), 1, 2);
  for (int i = 0; i < 2; ++i) queue.push(made_job("l" + std::to_string(i), "light"), 1, 1);
  EXPECT_EQ(taken(queue), "h0 l0 h1 h2 l1 h3");
}

TEST(FairQueue, AnIdleKeyGetsNoCredit) {
  FairQueue queue;
  for (int i = 0; i < 10; ++i) queue.push(made_job("a" + std::to_string(i), "a"), 1);
  for (int i = 0; i < 8; ++i) queue.pop();
  // It comes late and takes turns from now on.
  for (int i = 0; i < 4; ++i) queue.push(made_job("b" + std::to_string(i), "b"), 1);
  EXPECT_EQ(taken(queue), "b0 a8 b1 a9 b2 b3");
}

TEST(FairQueue, PrioritiesOrderTheJobsOfAKey) {
  FairQueue queue;
  queue.push(made_job("low", "a", Priority::low), 1);
  queue.push(made_job("normal", "a"), 1);
  queue.push(made_job("high", "a", Priority::high), 1);
  EXPECT_EQ(taken(queue), "high normal low");
}

TEST(FairQueue, AKeyThatIsAlwaysUrgentDoesNotStarveAnother) {
  FairQueue queue;
  for (int i = 0; i < 6; ++i) {
    queue.push(made_job("u" + std::to_string(i), "urgent", Priority::high), 1);
  }
  for (int i = 0; i < 3; ++i) queue.push(made_job("n" + std::to_string(i), "patient"), 1);
  // High costs twice as much: two of three turns go to the other.
  EXPECT_EQ(taken(queue), "n0 u0 n1 n2 u1 u2 u3 u4 u5");
}

TEST(FairQueue, KnowsPlacesAndForgetsWhatIsRemoved) {
  FairQueue queue;
  const auto a = made_job("a", "x"), b = made_job("b", "x"), c = made_job("c", "y");
  queue.push(a, 1);
  queue.push(b, 1);
  queue.push(c, 1);
  EXPECT_EQ(queue.position(*a), 1);
  EXPECT_EQ(queue.position(*c), 2);
  EXPECT_EQ(queue.position(*b), 3);
  EXPECT_TRUE(queue.remove(*a));
  EXPECT_FALSE(queue.remove(*a));
  EXPECT_EQ(queue.position(*a), 0);
  EXPECT_EQ(queue.size_of("x"), 1);
  EXPECT_EQ(queue.work(), 2);
  EXPECT_EQ(queue.order().size(), 2u);
  EXPECT_EQ(taken(queue), "b c");
  EXPECT_EQ(queue.position(*b), 0);
}

}  // namespace
}  // namespace octet::server
