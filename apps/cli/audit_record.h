// Runs a command so that PyTorch programs in it profile themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octet::cli {

struct RecordRequest {
  std::vector<std::string> command;  // a program of the PATH, and its arguments
  std::string out;                   // .json or .json.gz; further processes get similar names
  int64_t skip = 0, seconds = 0;     // of warm-up, and then of recording; 0: to the end
  bool stdout_is_ours = false;       // what the command prints goes to standard error then
};

struct Recording {
  std::vector<std::string> traces;  // of each process that wrote one
  std::string failure;              // how the command ended, a part of a sentence; empty: well
};

// The command shares our terminal: Ctrl-C is for it, and other signals are passed on to it. What it
// ends with on request counts as well. Throws Error where it cannot be started.
Recording record(const RecordRequest& request);

// How to record a command that left no trace, as lines.
std::string how_to_record(const std::vector<std::string>& command);

// "python main.py": the words as a shell takes them.
std::string shell_line(const std::vector<std::string>& command);

}  // namespace octet::cli
