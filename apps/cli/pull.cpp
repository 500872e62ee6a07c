// octet pull

#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "commands.h"
#include "octet/tools/report.h"
#include "octet/tools/text.h"
#include "output.h"
#include "stop_signal.h"

namespace octet::cli {
namespace {

// Bytes per second over the last few seconds.
class Rate {
 public:
  double of(int64_t bytes) {
    const auto now = Clock::now();
    samples_.emplace_back(now, bytes);
    while (samples_.size() > 2 && now - samples_.front().first > kWindow) samples_.pop_front();
    const std::chrono::duration<double> time = now - samples_.front().first;
    return time.count() > 0 ? static_cast<double>(bytes - samples_.front().second) / time.count()
                            : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kWindow = std::chrono::seconds(5);
  std::deque<std::pair<Clock::time_point, int64_t>> samples_;
};

class PullProgress {
 public:
  explicit PullProgress(const CommonFlags& flags) : quiet_(flags.quiet) {}

  bool operator()(const PullStep& step) {
    if (stop_signal_.was_sent()) return false;
    if (quiet_ || step.total == 0) return true;
    constexpr int64_t kKilobyte = 1000, kMegabyte = 1'000'000;
    const bool is_small = step.total < 100 * kMegabyte;
    const int64_t unit = is_small ? kKilobyte : kMegabyte;
    const int64_t already = (step.done - step.fetched) / unit;
    if (!progress_) {
      progress_.emplace("pull", step.total / unit, is_small ? "KB" : "MB", stderr, already);
    }
    const double rate = rate_.of(step.fetched);
    std::string note;
    if (rate > 0) note = human_bytes(static_cast<uint64_t>(rate)) + "/s";
    if (!step.checking.empty()) note = "checking " + printable(step.checking);
    progress_->skip(already);
    progress_->update(step.done / unit, note);
    return true;
  }

 private:
  StopSignal stop_signal_;
  bool quiet_;
  Rate rate_;
  std::optional<Progress> progress_;
};

}  // namespace

void add_pull(CLI::App& program, CommonFlags& flags) {
  CLI::App& command =
      add_command(program, flags, "pull", "Fetch a checkpoint from the Hugging Face Hub");
  const auto request = std::make_shared<PullRequest>();
  add_value(command, "repo", "REPO", request->repo, "owner/name, or its URL on the Hub")
      ->required();
  add_value(command, "--include", "PATTERN", request->include,
            "Only paths that match one of these patterns");
  add_value(command, "--exclude", "PATTERN", request->exclude,
            "No paths that match one of these patterns");
  add_value(command, "--revision", "REVISION", request->revision, "A branch, a tag or a commit")
      ->capture_default_str();
  add_value(command, "--cache-dir", "FOLDER", request->cache_dir,
            "Cache folder (default: the Hub's, as set by HF_HUB_CACHE or HF_HOME)");
  add_whole_number(command, "--connections", request->connections, 1, 64, "Parallel connections");
  add_whole_number(command, "--retries", request->retries, 0, 1000,
                   "Retries after an attempt that delivered nothing");
  set_examples(command, {"octet pull ideogram-ai/ideogram-4-fp8",
                         "octet pull ideogram-ai/ideogram-4-fp8 --include 'transformer/*'"});
  command.callback([&flags, request] {
    check_outputs(flags);
    const PullReport report = [&] {
      PullProgress progress(flags);
      return pull(*request, std::ref(progress));
    }();
    show(flags, to_text(report, detail_of(flags)), json_of(flags, report));
  });
}

}  // namespace octet::cli
