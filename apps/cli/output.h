// What the commands share: progress, and results as text or JSON.
//
// Nothing here throws because standard output is full: what could not be written is noticed once,
// by main(), when the command has finished.
#pragma once

#include <optional>
#include <string>

#include "flags.h"
#include "octet/sentence.h"
#include "octet/tools/progress.h"
#include "octet/tools/report.h"

namespace octet::cli {

// A progress bar of the command's work, or nothing for --quiet. It begins with the first report, so
// that a device that is absent gives its sentence alone.
class ProgressReports {
 public:
  ProgressReports(const CommonFlags& flags, std::string title, std::string unit);
  void operator()(int done, int total);

 private:
  bool quiet_;
  std::string title_;
  std::string unit_;
  std::optional<Progress> progress_;
};

// A bar for each phase of a command, one after the other.
class PhaseReports {
 public:
  PhaseReports(const CommonFlags& flags, std::string title)
      : flags_(flags), title_(std::move(title)) {}
  void operator()(const std::string& phase, int done, int total);

 private:
  const CommonFlags& flags_;
  std::string title_, phase_;
  std::optional<ProgressReports> progress_;
};

// A sentence on standard error, with flags for the fields that it names.
void say(const CommonFlags& flags, const Sentence& sentence);

Detail detail_of(const CommonFlags& flags);  // of texts, by --quiet and --verbose

// The result of a command: `text` on standard output, or the JSON there for `--json -`. A JSON file
// is written after the text, so that a full disk does not cost the user the result as well.
void show(const CommonFlags& flags, const std::string& text, const std::string& json);

}  // namespace octet::cli
