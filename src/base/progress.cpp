#include "octet/tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace octet {
namespace {

constexpr int kBarCells = 24;
constexpr auto kPauseOfLines = std::chrono::seconds(10);

std::string bar(double share) {
  const int full = static_cast<int>(share * kBarCells);
  std::string cells;
  for (int i = 0; i < kBarCells; ++i) cells += i < full ? "█" : "░";
  return cells;
}

}  // namespace

Progress::Progress(std::string title, int64_t total, std::string unit, std::FILE* out)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      out_(out),
      total_(std::max<int64_t>(total, 1)),
      terminal_(::isatty(::fileno(out)) == 1),
      start_(std::chrono::steady_clock::now()),
      last_line_(start_) {
  update(0);
}

Progress::~Progress() {
  if (terminal_) std::fputs("\n", out_);
  std::fflush(out_);
}

std::string Progress::line(const std::string& note) const {
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const std::string head = terminal_ ? title_ + " " + bar(share) : title_ + ":";
  std::string text = fmt::format("{} {}/{} {}", head, done_, total_, unit_);
  if (done_ > skipped_ && done_ < total_) {
    const double rate = static_cast<double>(done_ - skipped_) / elapsed.count();
    text += fmt::format(", {:.1f} s left", static_cast<double>(total_ - done_) / rate);
  } else if (done_ >= total_) {
    text += fmt::format(", {:.1f} s", elapsed.count());
  }
  return note.empty() ? text : text + "  " + note;
}

// Without a terminal: short work has one line, its first; of long work the log tells now and then.
bool Progress::is_worth_a_line(Time now) const {
  const int64_t quarter = done_ * 4 / total_;
  if (quarter == last_quarter_) return false;
  return last_quarter_ < 0 || now - last_line_ >= kPauseOfLines;
}

void Progress::update(int64_t done, const std::string& note) {
  done_ = std::clamp<int64_t>(done, 0, total_);
  if (terminal_) {
    // Overwrite a longer previous line with spaces, which works on any terminal.
    std::string text = line(note);
    const size_t length = text.size();
    if (length < drawn_) text.append(drawn_ - length, ' ');
    drawn_ = length;
    std::fputs(("\r" + text).c_str(), out_);
    std::fflush(out_);
    return;
  }
  const Time now = std::chrono::steady_clock::now();
  if (!is_worth_a_line(now)) return;
  last_quarter_ = done_ * 4 / total_;
  last_line_ = now;
  std::fputs((line(note) + "\n").c_str(), out_);  // fmt::print would throw when it cannot write
}

}  // namespace octet
