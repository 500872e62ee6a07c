#include "octet/tools/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/env.h"

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

// "45 s", "3 min", "1 h 20 min"
std::string rough_time(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600;
  constexpr double kMost = 1e9;  // more is no estimate
  const auto whole = static_cast<int64_t>(std::ceil(std::min(seconds, kMost)));
  if (whole < 2 * kMinute) return fmt::format("{} s", whole);
  if (whole < 2 * kHour) return fmt::format("{} min", (whole + kMinute - 1) / kMinute);
  return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
}

// Columns of the terminal that the first byte of a character begins: scripts from U+3000 on are
// wide, and those that follow it have none.
size_t columns_of(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  if ((code & 0xc0) == 0x80) return 0;
  return code >= 0xe3 ? 2 : 1;
}

size_t columns_of(const std::string& text) {
  size_t columns = 0;
  for (const char byte : text) columns += columns_of(byte);
  return columns;
}

// As much of the text as fits.
std::string cut(const std::string& text, size_t most) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    columns += columns_of(text[i]);
    if (columns > most) return text.substr(0, i);
  }
  return text;
}

// Without the last column, where some terminals wrap already; as good as endless if unknown.
size_t columns_of_terminal(std::FILE* out) {
  winsize size = {};
  constexpr size_t kUnknown = 10'000;
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknown;
  return size.ws_col - size_t{1};
}

}  // namespace

Progress::Progress(std::string title, int64_t total, std::string unit, std::FILE* out,
                   int64_t already)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      out_(out),
      total_(std::max<int64_t>(total, 1)),
      skipped_(already),
      terminal_(::isatty(::fileno(out)) == 1 && env::terminal().draws),
      start_(std::chrono::steady_clock::now()),
      last_line_(start_) {
  update(already);
}

Progress::~Progress() {
  if (terminal_) std::fputs("\n", out_);
  std::fflush(out_);
}

Progress::Line Progress::line(const std::string& note, double left_s) const {
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  Line line{.bar = bar(share), .amount = fmt::format("{}/{} {}", done_, total_, unit_)};
  if (done_ >= total_) {
    line.amount += fmt::format(", {:.1f} s", elapsed.count());
  } else if (left_s >= 0) {
    line.amount += fmt::format(", {} left", rough_time(left_s));
  } else if (done_ > skipped_) {
    const double rate = static_cast<double>(done_ - skipped_) / elapsed.count();
    line.amount += fmt::format(", {} left", rough_time(static_cast<double>(total_ - done_) / rate));
  }
  if (!note.empty()) line.note = "  " + note;
  return line;
}

// In one line of the terminal, since one that wraps cannot be drawn over: what does not fit is left
// out, the note first.
void Progress::draw(const Line& line) {
  const size_t most = columns_of_terminal(out_);
  std::string text = title_ + " " + line.bar + " " + line.amount;
  if (columns_of(text) > most) text = title_ + ": " + line.amount;
  if (columns_of(text + line.note) <= most) text += line.note;
  if (columns_of(text) > most) text = cut(line.amount, most);
  // Overwrite a longer previous line with spaces, which works on any terminal.
  const size_t columns = columns_of(text), before = std::min(drawn_, most);
  if (columns < before) text.append(before - columns, ' ');
  drawn_ = columns;
  std::fputs(("\r" + text).c_str(), out_);
  std::fflush(out_);
}

// Without a terminal: short work has one line, its first; of long work the log tells now and then.
bool Progress::is_worth_a_line(Time now) const {
  const int64_t quarter = done_ * 4 / total_;
  if (quarter == last_quarter_) return false;
  return last_quarter_ < 0 || now - last_line_ >= kPauseOfLines;
}

void Progress::update(int64_t done, const std::string& note, double left_s) {
  done_ = std::clamp<int64_t>(done, 0, total_);
  const Line now_shown = line(note, left_s);
  if (terminal_) return draw(now_shown);
  const Time now = std::chrono::steady_clock::now();
  if (!is_worth_a_line(now)) return;
  last_quarter_ = done_ * 4 / total_;
  last_line_ = now;
  // fmt::print would throw when it cannot write.
  std::fputs((title_ + ": " + now_shown.amount + now_shown.note + "\n").c_str(), out_);
}

}  // namespace octet
