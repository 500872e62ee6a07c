#include "tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/log.h"

namespace octet::tune {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMostRuns = 1e6;  // of a slice, however short one run seemed to be

struct Entrant {
  std::string name;
  bool is_reference = false;
  std::string kind = {};
  bool failed = false;
  double best_us = kNever;       // of the rounds before the final
  std::vector<double> final_us;  // of each run in the final
  std::vector<double> load_us;   // of each slice under load
  bool left_load = false;        // before its last round, being slow
};

// Of an even number the mean of the two in the middle: rounds go forwards and backwards, so that a
// drift adds as much to everybody's mean. The lower of two would be who happened to run early.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Tournament {
 public:
  Tournament(const Measure& measure, const MeasureUnderLoad& measure_under_load,
             const TunerOptions& options)
      : measure_(measure), measure_under_load_(measure_under_load), options_(options) {}

  TunerResult run(const std::vector<Candidate>& candidates,
                  const std::vector<std::string>& references) {
    first_round(candidates, references);
    // A budget that ends within a round ends the dropping too: who was not reached is not to blame.
    for (int done = 1; !is_spent(); ++done) {
      if (done == options_.full_rounds) drop_slow(options_.first_drop);
      if (done > options_.full_rounds) drop_slow(options_.later_drop);
      if (done >= options_.rounds) break;
      run_round(done, false);
    }
    run_final();
    if (measure_under_load_) run_under_load();
    return result();
  }

 private:
  // A candidate without any time is always let in: even the smallest budget gives an answer.
  bool is_spent() const { return spent_us_ >= options_.budget_us && has_time_; }

  void measure_once(Entrant& entrant, bool is_final) {
    if (entrant.failed || is_spent()) return;
    const auto us = time_or_failure(entrant, [&] { return measure_(entrant.name, turn_++); });
    if (!us) return;
    if (is_final) {
      entrant.final_us.push_back(*us);
    } else {
      entrant.best_us = std::min(entrant.best_us, *us);
    }
    spent_us_ += *us;
    has_time_ = has_time_ || !entrant.is_reference;
  }

  // What run() returns; nothing, and the entrant has failed, if that is not a time.
  template <class Run>
  std::optional<double> time_or_failure(Entrant& entrant, Run run) {
    Sentence reason;
    try {
      const double us = run();
      if (std::isfinite(us) && us > 0) return us;
      reason = fmt::format("its time is {} us, expected a positive number", us);
    } catch (const Error& error) {
      reason = error.sentence();
    }
    entrant.failed = true;
    log::debug("tuning: {} is left out: {}", entrant.name, reason);
    if (first_reason_.empty() && !entrant.is_reference) {
      first_reason_ = sentence("{}: {}", entrant.name, reason);
    }
    return std::nullopt;
  }

  // Forwards, candidates first. Fills the field until it has its number.
  void first_round(const std::vector<Candidate>& candidates,
                   const std::vector<std::string>& references) {
    int measured = 0;
    for (const Candidate& candidate : candidates) {
      if (measured == options_.most_candidates || is_spent()) break;
      Entrant entrant{.name = candidate.name, .kind = candidate.kind};
      measure_once(entrant, false);
      if (entrant.failed) continue;
      ++measured;
      field_.push_back(std::move(entrant));
    }
    check(measured > 0, "none of the {} candidates could be measured; the first, {}",
          candidates.size(), first_reason_);
    for (const std::string& name : references) {
      field_.push_back({name, true});
      measure_once(field_.back(), false);
    }
  }

  void run_round(int round, bool is_final) {
    if (round % 2 == 0) {
      for (auto entrant = field_.begin(); entrant != field_.end(); ++entrant) {
        measure_once(*entrant, is_final);
      }
    } else {
      for (auto entrant = field_.rbegin(); entrant != field_.rend(); ++entrant) {
        measure_once(*entrant, is_final);
      }
    }
  }

  void drop_slow(double factor) {
    double best_us = kNever;
    for (const Entrant& entrant : field_) {
      if (!entrant.is_reference && !entrant.failed) best_us = std::min(best_us, entrant.best_us);
    }
    retire_if([=](const Entrant& entrant) { return entrant.best_us > factor * best_us; });
  }

  // Takes candidates out of the rounds; they stay known as possible runners-up.
  template <class Predicate>
  void retire_if(Predicate predicate) {
    std::vector<Entrant> stay;
    for (Entrant& entrant : field_) {
      const bool goes = !entrant.is_reference && (entrant.failed || predicate(entrant));
      (goes ? retired_ : stay).push_back(std::move(entrant));
    }
    field_ = std::move(stay);
  }

  // Without a second finalist there is nothing to decide. A final that the budget cuts short before
  // each finalist had a run says nothing and does not count.
  void run_final() {
    std::vector<double> times;
    for (const Entrant& entrant : field_) {
      if (!entrant.is_reference && !entrant.failed) times.push_back(entrant.best_us);
    }
    std::ranges::sort(times);
    const size_t most = static_cast<size_t>(options_.finalists);
    if (times.size() > most) {
      size_t places = most;  // of equally fast ones the better estimate, which comes first, gets in
      retire_if([&](const Entrant& entrant) {
        if (entrant.best_us > times[most - 1] || places == 0) return true;
        --places;
        return false;
      });
    }
    if (times.size() < 2 || most < 2) return;
    for (int round = 0; round < options_.final_rounds && !is_spent(); ++round) {
      run_round(round, true);
    }
    const auto has_run = [](const Entrant& entrant) {
      return entrant.is_reference || entrant.failed || !entrant.final_us.empty();
    };
    final_counts_ = std::ranges::all_of(field_, has_run);
  }

  // Without pause for about `us`; its time per run, if it did not fail and the budget allows it.
  std::optional<double> run_slice(Entrant& entrant, double us) {
    if (entrant.failed || load_spent_us_ >= options_.load_budget_us) return std::nullopt;
    const int runs = static_cast<int>(std::clamp(us / time_of(entrant), 1.0, kMostRuns));
    const auto time =
        time_or_failure(entrant, [&] { return measure_under_load_(entrant.name, runs); });
    if (time) load_spent_us_ += *time * runs;
    return time;
  }

  // What counts of a slice under load: that without its beginning.
  std::optional<double> run_settled_slice(Entrant& entrant) {
    if (options_.load_settle_us > 0) run_slice(entrant, options_.load_settle_us);
    return run_slice(entrant, options_.load_slice_us);
  }

  // The candidates that meet under load, best first.
  std::vector<Entrant*> load_finalists() {
    std::vector<Entrant*> finalists;
    for (Entrant& entrant : field_) {
      if (!entrant.is_reference && !entrant.failed) finalists.push_back(&entrant);
    }
    if (finalists.empty()) return finalists;
    std::ranges::stable_sort(finalists, [this](const Entrant* a, const Entrant* b) {
      return time_of(*a) < time_of(*b);
    });
    const auto is_behind = [&](const Entrant* entrant) {
      return time_of(*entrant) > options_.load_drop * time_of(*finalists.front());
    };
    finalists.erase(std::ranges::find_if(finalists, is_behind), finalists.end());
    // The best of each kind first: variants of one tile, within a percent of each other, would
    // leave no place for the tile that draws less power. But single runs do not tell either which
    // variant of the best tile is ahead under load, so a second one comes right behind it.
    std::set<std::string> kinds;
    std::stable_partition(finalists.begin(), finalists.end(), [&](const Entrant* entrant) {
      return entrant->kind.empty() || kinds.insert(entrant->kind).second;
    });
    const std::string& best_kind = finalists.front()->kind;
    const auto second = std::find_if(
        finalists.begin() + 1, finalists.end(),
        [&](const Entrant* entrant) { return !best_kind.empty() && entrant->kind == best_kind; });
    if (second != finalists.end()) std::rotate(finalists.begin() + 1, second, second + 1);
    const size_t most = static_cast<size_t>(options_.load_finalists);
    if (finalists.size() > most) finalists.resize(most);
    return finalists;
  }

  // Who was disturbed in one slice has a better one, and stays.
  void drop_slow_under_load(std::vector<Entrant*>& still_in) const {
    std::erase_if(still_in, [](const Entrant* entrant) { return entrant->failed; });
    double best_us = kNever;
    for (const Entrant* entrant : still_in) best_us = std::min(best_us, median(entrant->load_us));
    std::erase_if(still_in, [&](Entrant* entrant) {
      const double fastest = *std::min_element(entrant->load_us.begin(), entrant->load_us.end());
      entrant->left_load = fastest > options_.load_later_drop * best_us;
      return entrant->left_load;
    });
  }

  // References run once, at the end: one that needs little power would leave its successor a clock
  // that no candidate has in a model. As in the final, a load that not all have felt does not
  // count.
  void run_under_load() {
    std::vector<Entrant*> finalists = load_finalists();
    if (finalists.size() < 2 || time_of(*finalists.front()) < options_.load_shortest_us) return;
    run_slice(*finalists.front(), options_.load_warm_up_us);
    std::vector<Entrant*> still_in = finalists;
    for (int round = 0; round < options_.load_rounds; ++round) {
      for (Entrant* finalist : still_in) {
        if (const auto us = run_settled_slice(*finalist)) finalist->load_us.push_back(*us);
      }
      // As in the first rounds, a budget that ends within a round ends the dropping too.
      if (load_spent_us_ >= options_.load_budget_us) break;
      std::ranges::reverse(still_in);
      if (round % 2 == 1 && round + 1 < options_.load_rounds) drop_slow_under_load(still_in);
      if (still_in.size() < 2) break;
    }
    std::erase_if(finalists, [](const Entrant* finalist) { return finalist->failed; });
    const auto has_felt_it = [](const Entrant* finalist) { return !finalist->load_us.empty(); };
    if (finalists.size() < 2 || !std::ranges::all_of(finalists, has_felt_it)) {
      return;
    }
    for (Entrant& entrant : field_) {
      if (!entrant.is_reference) continue;
      if (const auto us = run_settled_slice(entrant)) entrant.load_us = {*us};
    }
    load_counts_ = true;
    retire_if([](const Entrant& entrant) { return entrant.load_us.empty(); });
  }

  TunerResult result() {
    std::vector<const Entrant*> ranking;
    TunerResult result;
    for (const Entrant& entrant : field_) {
      if (entrant.failed) continue;
      if (!entrant.is_reference) {
        ranking.push_back(&entrant);
      } else if (time_of(entrant) != kNever && load_counts_ == !entrant.load_us.empty()) {
        result.reference_us[entrant.name] = time_of(entrant);
      }
    }
    result.under_load = load_counts_;
    // The slices of those who left the load were its first, at another temperature.
    const auto faster = [this](const Entrant* a, const Entrant* b) {
      if (load_counts_ && a->left_load != b->left_load) return b->left_load;
      return time_of(*a) < time_of(*b);
    };
    std::ranges::stable_sort(ranking, faster);
    // Behind the finalists come those that were dropped, however the clocks stood when they ran.
    const size_t finalists = ranking.size();
    for (const Entrant& entrant : retired_) {
      if (!entrant.failed) ranking.push_back(&entrant);
    }
    std::stable_sort(ranking.begin() + static_cast<std::ptrdiff_t>(finalists), ranking.end(),
                     faster);
    check(!ranking.empty(), "no candidate could be measured to the end; the first that failed, {}",
          first_reason_);
    result.winner = ranking[0]->name;
    result.winner_us = time_of(*ranking[0]);
    if (ranking.size() > 1) {
      result.runner_up = ranking[1]->name;
      result.runner_up_us = time_of(*ranking[1]);
    }
    return result;
  }

  // References that the final did not reach, and those who were dropped, keep their earlier time.
  double time_of(const Entrant& entrant) const {
    if (load_counts_ && !entrant.load_us.empty()) return median(entrant.load_us);
    return final_counts_ && !entrant.final_us.empty() ? median(entrant.final_us) : entrant.best_us;
  }

  const Measure& measure_;
  const MeasureUnderLoad& measure_under_load_;
  const TunerOptions& options_;
  std::vector<Entrant> field_;  // candidates by estimate, then references
  std::vector<Entrant> retired_;
  Sentence first_reason_;
  double spent_us_ = 0;
  double load_spent_us_ = 0;
  int turn_ = 0;
  bool has_time_ = false;
  bool final_counts_ = false;
  bool load_counts_ = false;
};

void check_options(const TunerOptions& options) {
  const auto at_least = [](const char* name, double value, double least) {
    check(value >= least, "the tuner's {} is {}, expected at least {}", name, value, least);
  };
  at_least("most_candidates", options.most_candidates, 1);
  at_least("full_rounds", options.full_rounds, 1);
  at_least("rounds", options.rounds, 1);
  at_least("finalists", options.finalists, 1);
  at_least("final_rounds", options.final_rounds, 0);
  at_least("first_drop", options.first_drop, 1);
  at_least("later_drop", options.later_drop, 1);
  at_least("budget_us", options.budget_us, 0);
  at_least("load_finalists", options.load_finalists, 1);
  at_least("load_drop", options.load_drop, 1);
  at_least("load_rounds", options.load_rounds, 0);
  at_least("load_later_drop", options.load_later_drop, 1);
  at_least("load_slice_us", options.load_slice_us, 0);
  at_least("load_settle_us", options.load_settle_us, 0);
  at_least("load_warm_up_us", options.load_warm_up_us, 0);
  at_least("load_shortest_us", options.load_shortest_us, 0);
  at_least("load_budget_us", options.load_budget_us, 0);
}

}  // namespace

TunerResult find_fastest(std::vector<Candidate> candidates,
                         const std::vector<std::string>& references, const Measure& measure,
                         const TunerOptions& options, const MeasureUnderLoad& measure_under_load) {
  check_options(options);
  check(!candidates.empty(), "there is no candidate to measure, expected at least one");
  std::ranges::stable_sort(candidates, has_better_estimate);
  return Tournament(measure, measure_under_load, options).run(candidates, references);
}

}  // namespace octet::tune
