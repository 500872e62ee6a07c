// tune: who wins, who is dropped, who runs when; under noise, drift and failures.
#include "tune/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "formats/error_message.h"
#include "tune/tune_support.h"

namespace octet::tune {
namespace {

using test::FakeDevice;
using test::LogLines;
using Names = std::vector<std::string>;

// With estimates in the order of the list.
std::vector<Candidate> candidates_of(const Names& names) {
  std::vector<Candidate> candidates;
  for (const std::string& name : names) {
    candidates.push_back({name, static_cast<double>(candidates.size() + 1)});
  }
  return candidates;
}

TEST(Tuner, TheFastestWins) {
  FakeDevice device({{"a", 12}, {"b", 10}, {"c", 11}, {"bf16", 20}, {"cheap", 1}});
  const TunerResult result =
      find_fastest(candidates_of({"a", "b", "c"}), {"bf16", "cheap"}, device.measure());
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.winner_us, 10);
  EXPECT_EQ(result.runner_up, "c");
  EXPECT_EQ(result.runner_up_us, 11);
  EXPECT_EQ(result.reference_us, (std::map<std::string, double>{{"bf16", 20}, {"cheap", 1}}));
}

TEST(Tuner, OneCandidateHasNoRunnerUp) {
  FakeDevice device({{"a", 12}});
  const TunerResult result = find_fastest(candidates_of({"a"}), {}, device.measure());
  EXPECT_EQ(result.winner, "a");
  EXPECT_EQ(result.winner_us, 12);
  EXPECT_EQ(result.runner_up, "");
  EXPECT_EQ(result.runner_up_us, 0);
  EXPECT_EQ(device.runs_of("a"), TunerOptions().rounds);  // a final against nobody is not played
}

TEST(Tuner, EachRunHasItsOwnTurn) {
  FakeDevice device({{"a", 10.5}, {"b", 10}, {"c", 100}, {"bf16", 20}});
  device.disturb = [](double us, const std::string& name, int) {
    if (name == "c") fail("failed");
    return us;
  };
  find_fastest(candidates_of({"a", "b", "c"}), {"bf16"}, device.measure());
  std::vector<int> expected(device.turns.size());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(device.turns, expected);
  EXPECT_GT(expected.size(), 20u);
}

TEST(Tuner, EveryOtherRoundGoesBackwards) {
  FakeDevice device({{"a", 10}, {"b", 10}, {"c", 10}, {"bf16", 10}});
  find_fastest(candidates_of({"a", "b", "c"}), {"bf16"}, device.measure(),
               {.rounds = 3, .finalists = 2, .final_rounds = 2});
  EXPECT_EQ(device.runs, (Names{"a", "b", "c", "bf16", "bf16", "c", "b", "a", "a", "b", "c",  //
                                "bf16", "a", "b", "bf16", "bf16", "b", "a"}));
}

TEST(Tuner, TheSlowAreDroppedEarlyAndTheCloseLate) {
  FakeDevice device({{"a", 10}, {"b", 10.9}, {"c", 11.5}, {"d", 13}, {"bf16", 40}});
  const TunerOptions options{.full_rounds = 2, .rounds = 5, .finalists = 2, .final_rounds = 4};
  const TunerResult result =
      find_fastest(candidates_of({"d", "c", "b", "a"}), {"bf16"}, device.measure(), options);
  EXPECT_EQ(device.runs_of("d"), 2);  // 30 % slower: out with the first drop
  EXPECT_EQ(device.runs_of("c"), 3);  // 15 %: out with the second
  EXPECT_EQ(device.runs_of("b"), 9);  // 9 %: stays
  EXPECT_EQ(device.runs_of("a"), 9);
  EXPECT_EQ(device.runs_of("bf16"), 9);  // references stay, however slow
  EXPECT_EQ(result.winner, "a");
  EXPECT_EQ(result.runner_up, "b");
}

TEST(Tuner, ADroppedCandidateCanBeTheRunnerUp) {
  FakeDevice device({{"a", 10}, {"b", 50}, {"c", 40}});
  const TunerResult result = find_fastest(candidates_of({"a", "b", "c"}), {}, device.measure());
  EXPECT_EQ(result.runner_up, "c");
  EXPECT_EQ(result.runner_up_us, 40);
}

TEST(Tuner, TheFirstDropCanFollowTheFirstRound) {
  FakeDevice device({{"a", 10}, {"b", 20}});
  find_fastest(candidates_of({"a", "b"}), {}, device.measure(), {.full_rounds = 1, .rounds = 4});
  EXPECT_EQ(device.runs_of("b"), 1);
}

TEST(Tuner, EqualTimesGoToTheBetterEstimate) {
  FakeDevice device({{"a", 10}, {"b", 10}, {"c", 10}, {"d", 10}});
  const std::vector<Candidate> candidates = {{"c", 3}, {"a", 1}, {"d", 4}, {"b", 2}};
  const TunerResult result = find_fastest(candidates, {}, device.measure(), {.finalists = 2});
  EXPECT_EQ(result.winner, "a");
  EXPECT_EQ(result.runner_up, "b");
}

// Four of the five runs of the best are disturbed before the final: the one that is not counts.
TEST(Tuner, DisturbedRunsDropNobody) {
  FakeDevice device({{"a", 10}, {"b", 9.7}, {"c", 10.2}});
  int runs_of_best = 0;
  device.disturb = [&](double us, const std::string& name, int) {
    return name == "b" && ++runs_of_best <= 5 && runs_of_best != 2 ? us * 1.5 : us;
  };
  const TunerResult result = find_fastest(candidates_of({"a", "b", "c"}), {}, device.measure());
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.winner_us, 9.7);
}

// A device at its power limit is faster at times, not only slower.
TEST(Tuner, ALuckyRunWinsNoFinal) {
  FakeDevice device({{"a", 10.4}, {"b", 10}});
  int runs_of_a = 0;
  device.disturb = [&](double us, const std::string& name, int) {
    return name == "a" && ++runs_of_a == 8 ? us * 0.8 : us;
  };
  const TunerResult result = find_fastest(candidates_of({"a", "b"}), {}, device.measure());
  EXPECT_GE(runs_of_a, 8);
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.winner_us, 10);
  EXPECT_EQ(result.runner_up_us, 10.4);
}

TEST(Tuner, NoiseDoesNotHideTheBest) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    FakeDevice device({{"a", 10.3}, {"b", 10.5}, {"c", 10}, {"d", 12}, {"e", 10.4}});
    std::mt19937 random(seed);
    device.disturb = [&random](double us, const std::string&, int) {
      const double share = std::uniform_real_distribution<>(0, 1)(random);
      const double spike = share < 0.1 ? 1 + 10 * share : 1;  // a tenth of the runs is up to 2x
      return us * spike * (1 + 0.02 * std::uniform_real_distribution<>(0, 1)(random));
    };
    const auto candidates = candidates_of({"a", "b", "c", "d", "e"});
    EXPECT_EQ(find_fastest(candidates, {}, device.measure()).winner, "c") << "seed " << seed;
  }
}

// The device slows down by 0.3 % per run, as hot ones do. In the first round the first of the list
// is ahead of the last by more than the 2 % that really are between them.
TEST(Tuner, DriftDoesNotHelpTheFirstOfTheList) {
  Names names;
  std::map<std::string, double> times;
  for (int i = 0; i < 10; ++i) {
    names.push_back("kernel" + std::to_string(i));
    times[names.back()] = i == 0 ? 10.2 : i == 9 ? 10 : 11;
  }
  FakeDevice device(times);
  device.disturb = [](double us, const std::string&, int turn) { return us * (1 + 0.003 * turn); };
  const TunerResult result = find_fastest(candidates_of(names), {}, device.measure());
  EXPECT_EQ(result.winner, "kernel9");
  EXPECT_EQ(result.runner_up, "kernel0");
}

// The first run of each loads its code, and the clocks are still low.
TEST(Tuner, AColdStartDropsNobody) {
  FakeDevice device({{"a", 10}, {"b", 11}, {"c", 11}, {"d", 11}});
  device.disturb = [](double us, const std::string& name, int turn) {
    return turn < 4 ? us * (name == "a" ? 100 : 5) : us;
  };
  EXPECT_EQ(find_fastest(candidates_of({"a", "b", "c", "d"}), {}, device.measure()).winner, "a");
}

// References and winner are compared with each other: their times come from the same rounds.
TEST(Tuner, TheTimesOfAReferenceAreThoseOfTheFinal) {
  FakeDevice device({{"a", 10}, {"b", 10.5}, {"bf16", 20}});
  device.disturb = [](double us, const std::string&, int turn) {
    return turn < 15 ? us : us * 2;  // the clocks halve after the five rounds before the final
  };
  const TunerResult result = find_fastest(candidates_of({"a", "b"}), {"bf16"}, device.measure());
  EXPECT_EQ(result.winner_us, 20);
  EXPECT_EQ(result.runner_up_us, 21);
  EXPECT_EQ(result.reference_us.at("bf16"), 40);
}

TEST(Tuner, OnlyTheBestEstimatesAreMeasured) {
  FakeDevice device({{"a", 10}, {"b", 11}, {"c", 1}, {"unknown", 1}});
  const std::vector<Candidate> candidates = {
      {"unknown", std::nan("")}, {"c", 30}, {"b", 20}, {"a", 10}};
  const TunerResult result = find_fastest(candidates, {}, device.measure(), {.most_candidates = 2});
  EXPECT_EQ(result.winner, "a");
  EXPECT_EQ(device.runs_of("c"), 0);
  EXPECT_EQ(device.runs_of("unknown"), 0);
}

TEST(Tuner, TheBudgetBoundsTheRuns) {
  for (const double budget_us : {0.0, 1.0, 35.0, 100.0, 400.0}) {
    FakeDevice device({{"a", 10}, {"b", 9}, {"c", 11}, {"bf16", 20}});
    double spent_us = 0;
    double last_us = 0;
    device.disturb = [&](double us, const std::string&, int) {
      spent_us += last_us = us;
      return us;
    };
    const TunerResult result = find_fastest(candidates_of({"a", "b", "c"}), {"bf16"},
                                            device.measure(), {.budget_us = budget_us});
    EXPECT_LT(spent_us - last_us, std::max(budget_us, 1.0));
    EXPECT_EQ(result.winner, budget_us < 10 ? "a" : "b")
        << budget_us;  // of those that were reached
    EXPECT_EQ(result.reference_us.count("bf16"), budget_us < 30 ? 0u : 1u) << budget_us;
  }
}

// The final has reached one of two finalists, at another clock.
TEST(Tuner, AFinalCutShortDoesNotCount) {
  FakeDevice device({{"a", 10}, {"b", 9.5}});
  device.disturb = [](double us, const std::string&, int turn) { return turn < 10 ? us : us / 2; };
  const TunerResult result =
      find_fastest(candidates_of({"a", "b"}), {}, device.measure(), {.budget_us = 100});
  EXPECT_EQ(device.runs.size(), 11u);
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.winner_us, 9.5);
}

TEST(Tuner, AFailingCandidateIsLeftOutWithADebugLine) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double time : {std::nan(""), infinity, -infinity, 0.0, -1.0}) {
    const LogLines log;
    FakeDevice device({{"bad", time}, {"throws", 1}, {"good", 10}, {"reference", time}});
    device.disturb = [](double us, const std::string& name, int) {
      if (name == "throws") fail("too many registers");
      return us;
    };
    const TunerResult result =
        find_fastest(candidates_of({"bad", "throws", "good"}), {"reference"}, device.measure());
    EXPECT_EQ(result.winner, "good");
    EXPECT_EQ(result.runner_up, "");
    EXPECT_TRUE(result.reference_us.empty());
    for (const char* name : {"bad", "throws", "reference"}) EXPECT_EQ(device.runs_of(name), 1);
    EXPECT_EQ(log.count(log::Level::debug), 3u) << log.all();
    EXPECT_EQ(log.count(log::Level::info), 0u);
    EXPECT_EQ(log.count_with("throws is left out: too many registers"), 1u);
  }
}

TEST(Tuner, AFailureInTheFinalLosesIt) {
  FakeDevice device({{"a", 10}, {"b", 10.5}, {"c", 20}});
  device.disturb = [&device](double us, const std::string& name, int) {
    if (name == "a" && device.runs_of("a") == 7) fail("fell off the bus");
    return us;
  };
  const TunerResult result = find_fastest(candidates_of({"a", "b", "c"}), {}, device.measure());
  EXPECT_EQ(result.winner, "b");
  EXPECT_EQ(result.runner_up, "c");
}

TEST(Tuner, TheNextEstimateReplacesOneThatFails) {
  FakeDevice device({{"a", 0}, {"b", 0}, {"c", 10}, {"d", 9}, {"e", 8}});
  const TunerResult result = find_fastest(candidates_of({"a", "b", "c", "d", "e"}), {},
                                          device.measure(), {.most_candidates = 2});
  EXPECT_EQ(result.winner, "d");
  EXPECT_EQ(result.runner_up, "c");
  EXPECT_EQ(device.runs_of("e"), 0);
}

TEST(Tuner, WhenAllFailTheFirstReasonIsTold) {
  FakeDevice device({{"a", 1}, {"b", 1}, {"bf16", 1}});
  device.disturb = [](double, const std::string& name, int) -> double {
    fail("no memory for {}", name);
  };
  EXPECT_ERROR_WITH(find_fastest(candidates_of({"a", "b"}), {"bf16"}, device.measure()),
                    "none of the 2 candidates could be measured; the first, a: no memory for a");
  device.disturb = [](double us, const std::string&, int turn) {
    return turn < 5 ? us : std::nan("");
  };
  EXPECT_ERROR_WITH(find_fastest(candidates_of({"a", "b"}), {}, device.measure()),
                    "no candidate could be measured to the end");
}

TEST(Tuner, OptionsWithoutSenseAreRefused) {
  FakeDevice device({{"a", 1}});
  const auto with = [&device](const TunerOptions& options) {
    return find_fastest(candidates_of({"a"}), {}, device.measure(), options);
  };
  EXPECT_ERROR_WITH(with({.most_candidates = 0}), "most_candidates is 0, expected at least 1");
  EXPECT_ERROR_WITH(with({.rounds = 0}), "rounds is 0");
  EXPECT_ERROR_WITH(with({.first_drop = 0.9}), "first_drop is 0.9, expected at least 1");
  EXPECT_ERROR_WITH(with({.budget_us = std::nan("")}), "budget_us is nan");
  EXPECT_ERROR_WITH(find_fastest({}, {"bf16"}, device.measure()), "no candidate to measure");
}

}  // namespace
}  // namespace octet::tune
