// What the commands share that make pictures: progress, signals to stop, the report.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "flags.h"
#include "octet/generate.h"
#include "octet/progress.h"
#include "stop_signal.h"

namespace octet::cli {

// A bar for each stage of the work, or nothing for --quiet. Asks to stop after a signal.
class RenderingProgress {
 public:
  explicit RenderingProgress(const CommonFlags& flags);

  // Titles begin with this from now on: "A: ".
  void begin(const std::string& prefix) { prefix_ = prefix; }
  bool operator()(const GenerateStep& step);

 private:
  StopSignal stop_signal_;
  bool quiet_;
  std::string prefix_;
  std::string stage_;
  int64_t done_ = 0;
  std::optional<Progress> progress_;
};

// -o; the names of other kinds of pictures are wrong usage.
void add_picture_path(CLI::App& command, std::string& path, const std::string& help);

// "out.png" alone, "out-1.png", "out-2.png", ... of several.
std::string picture_path(const std::string& path, int index, int images);

// Which kernels ran, how often and how fast, and where the time went.
std::string report_text(const GenerateReport& report);
nlohmann::ordered_json report_json(const GenerateReport& report);

// What was asked for, in JSON: version, model, size, caption, preset, guidance, seed.
nlohmann::ordered_json request_json(const GenerateRequest& request, const GenerateReport& report);

}  // namespace octet::cli
