#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "base/log.h"
#include "base/stopwatch.h"
#include "hub/http.h"

namespace octet::hub {
namespace {

constexpr double kFirstPause = 0.5;
constexpr double kLongestPause = 30;
constexpr double kLongestAskedPause = 600;
constexpr double kPauseWorthSaying = 5;
constexpr int kFirstRetries = 2;    // half a second and a second later
constexpr double kSlowAttempt = 1;  // seconds: a look-up that ran into its own time limit

void wait(double seconds, const std::function<bool()>& is_wanted) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    if (is_wanted && !is_wanted()) throw Stopped();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < end);
}

}  // namespace

double backoff_seconds(int failures, double random_share) {
  const double pause = kFirstPause * std::pow(2.0, std::clamp(failures - 1, 0, 10));
  return std::min(pause, kLongestPause) * (0.75 + 0.5 * random_share);
}

void try_until_done(const Patience& patience, const std::function<void()>& attempt,
                    const std::function<bool()>& got_further) {
  std::minstd_rand random{std::random_device{}()};
  for (int failures = 0;;) {
    const Stopwatch watch;
    try {
      return attempt();
    } catch (const Transient& failure) {
      failures = got_further && got_further() ? 1 : failures + 1;
      if (failures > patience.retries || failure.after_seconds > kLongestAskedPause) throw;
      const bool is_hopeless =
          failures > kFirstRetries || watch.microseconds() * 1e-6 > kSlowAttempt;
      const bool reaches_nobody = dynamic_cast<const Unreachable*>(&failure) != nullptr;
      if (patience.is_first_contact && reaches_nobody && is_hopeless) throw;
      const double share = std::uniform_real_distribution<double>()(random);
      const double pause = std::max(backoff_seconds(failures, share), failure.after_seconds);
      const auto level = pause >= kPauseWorthSaying ? log::Level::info : log::Level::debug;
      log::write(level, fmt::format("{} (attempt {} of {} in {:.1f} s)", failure.what(),
                                    failures + 1, patience.retries + 1, pause));
      wait(pause, patience.is_wanted);
    }
  }
}

}  // namespace octet::hub
