// What the commands share that make pictures: progress, signals to stop, the report.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "flags.h"
#include "octet/generate.h"
#include "octet/tools/progress.h"
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
    std::string note;  // at the end of the line
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

// Which kernels ran, how often and how fast, and where the time went.
std::string report_text(const RenderReport& report);
nlohmann::ordered_json report_json(const RenderReport& report);

// What was asked for, in JSON: version, model, size, caption, preset, guidance, seed.
nlohmann::ordered_json request_json(const GenerateRequest& request, const RenderReport& report);

}  // namespace octet::cli
