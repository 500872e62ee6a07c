// Progress of long work, on a terminal or in a log.
//
//   octet::Progress progress("tuning", shapes.size(), "shapes");
//   for (size_t i = 0; i < shapes.size(); ++i) { tune(shapes[i]); progress.update(i + 1); }
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "octet/export.h"

namespace octet {

// Draws a bar with the amount done and the remaining time on a terminal, and otherwise plain lines:
// one when the work starts, then at most one per quarter and per ten seconds. So does a terminal
// that cannot draw over a line or has no UTF-8 (TERM=dumb, LC_ALL=C). A line that cannot be written
// (stderr is closed, its disk is full) is lost and never stops the work.
class OCTET_API Progress {
 public:
  // `out` is usually stderr; `total` counts what `unit` names ("tensors", "shapes"). `already` was
  // done before the work began, as skip() has it.
  Progress(std::string title, int64_t total, std::string unit, std::FILE* out = stderr,
           int64_t already = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Sets the amount done; `note` is shown at the end of the line. `left_s` is the remaining time of
  // a caller who knows it better than the amounts tell; negative: it is estimated from them.
  void update(int64_t done, const std::string& note = {}, double left_s = -1);

  // This much of the amount done was there before the work began; the remaining time is estimated
  // without it.
  void skip(int64_t amount) { skipped_ = amount; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Line {
    std::string bar, amount, note;
  };
  Line line(const std::string& note, double left_s) const;
  void draw(const Line& line);
  bool is_worth_a_line(Time now) const;

  std::string title_;
  std::string unit_;
  std::FILE* out_;
  int64_t total_;
  int64_t done_ = 0;
  int64_t skipped_ = 0;
  int64_t last_quarter_ = -1;
  size_t drawn_ = 0;
  bool terminal_;
  Time start_, last_line_;
};

}  // namespace octet
