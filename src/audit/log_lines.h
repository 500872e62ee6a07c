// What lines of logs tell about the kernels that run: log_lines.json, each row with an example and
// its source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet::audit {

struct LogLine {
  std::string_view program;  // "ComfyUI"
  // native_int8, fake_int8, fallback, native_fp8, weight_only, unquantized or info
  std::string_view verdict;
  std::string_view meaning;  // one sentence
};

// Of the first row that matches; null where the line tells nothing. Thread-safe.
const LogLine* log_line_for(std::string_view line);

// All rows, for the tests.
struct LogRow {
  std::string program, pattern, verdict, meaning, example, source;
};
const std::vector<LogRow>& log_rows();

}  // namespace octet::audit
