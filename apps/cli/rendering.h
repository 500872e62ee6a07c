// What the commands share that make pictures: progress and signals to stop.
#pragma once

#include <optional>
#include <string>

#include "flags.h"
#include "octet/generate.h"
#include "octet/tools/progress.h"
#include "octet/tools/report.h"
#include "stop_signal.h"

namespace octet::cli {

// A bar for each stage of the work, or nothing for --quiet. Asks to stop after a signal.
class RenderingProgress {
 public:
  explicit RenderingProgress(const CommonFlags& flags);

  // Titles begin with this from now on: "A: ".
  void begin(const std::string& prefix) { prefix_ = prefix; }
  bool operator()(const RenderProgress& progress);

  struct Work {
    std::string title, unit;
    int64_t done = 0, total = 0;
    std::string note;    // at the end of the line
    double left_s = -1;  // where it is known better than by amounts
  };
  bool show(const Work& work);

  // Ends the line of the bar, so that another one can be written.
  void end() { progress_.reset(); }

 private:
  StopSignal stop_signal_;
  bool quiet_;
  std::string prefix_;
  std::string title_;
  int64_t done_ = 0;
  std::optional<Progress> progress_;
};

// With what is predicted, for the report. Says where weights go if a step brings some of them, or,
// where parts serve several pictures, if any does not stay.
PlannedPictures tell_plan(const CommonFlags& flags, const EngineInfo& info,
                          const GenerateRequest& request, bool several);

}  // namespace octet::cli
