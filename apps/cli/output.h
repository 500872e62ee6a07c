// What the commands share: progress, results as text or JSON, and the files that they write.
//
// Nothing here throws because standard output is full: what could not be written is noticed once,
// by main(), when the command has finished.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "octet/error.h"
#include "octet/sentence.h"
#include "octet/tools/progress.h"
#include "octet/tools/report.h"

namespace octet::cli {

// A progress bar of the command's work, or nothing for --quiet. It begins with the first report, so
// that a missing device gives only its sentence.
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

// For sentences about what a file contains, which its folders would bury: of a long path the end,
// "...name/of/it.json". Files that are written or cannot be opened are named in full.
std::string short_path(const std::string& path);

Detail detail_of(const CommonFlags& flags);  // of texts, by --quiet and --verbose

// The result of a command: `text` on standard output, or the JSON there for `--json -`. A JSON file
// is written after the text, so that a full disk does not cost the user the result as well.
void show(const CommonFlags& flags, const std::string& text, const std::string& json);
// That JSON, made only where it is asked for: of a long trace it is long.
template <class Result>
std::string json_of(const CommonFlags& flags, const Result& result) {
  return flags.json.empty() ? std::string() : to_json(result);
}

// With the files that the command writes besides that of --json, where "" stands for one that was
// not asked for, and the other files and folders that it was given: fails where an output cannot be
// written, and with wrong usage where it would replace another output, an input, or a file in an
// input's folder that is no earlier output. Folders of outputs are made. To be called before the
// work.
void check_outputs(const CommonFlags& flags, std::vector<std::string> outputs = {},
                   const std::vector<std::string>& others = {});

// A whole command that measures: the work on the device of the flags, with a bar of Reports, and
// its result.
template <class Reports, class Request, class Work, class... Titles>
void measure(const CommonFlags& flags, Request& request, const Work& work,
             const Titles&... titles) {
  request.device = flags.device;
  request.threads = flags.threads;
  check_outputs(flags);
  const auto result = [&] {
    Reports progress(flags, titles...);
    return work(request, std::ref(progress));
  }();
  show(flags, to_text(result), json_of(flags, result));
}

// A result that the user asked to be told of by the exit code 3, for main(); thrown when everything
// else is done and printed.
class FailedCheck : public Error {
 public:
  using Error::Error;
};

}  // namespace octet::cli
