#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "audit/patterns.h"
#include "audit/read_trace.h"
#include "base/error.h"
#include "formats/text.h"

namespace octet::audit {
namespace {

constexpr size_t kMaxLogFindings = 200;
constexpr size_t kMaxMatchedLine = 4096;  // what matters is at the beginning of a line
constexpr size_t kMaxShownLine = 240;

// Without the codes that colour a terminal: ESC [ ... letter.
std::string without_colours(std::string_view line) {
  std::string plain;
  while (!line.empty()) {
    const size_t escape = line.find('\x1b');
    plain += line.substr(0, escape);
    if (escape == line.npos) break;
    line.remove_prefix(escape + 1);
    if (!line.starts_with('[')) continue;
    line.remove_prefix(1);
    const size_t end = line.find_first_not_of("0123456789;:?");
    line.remove_prefix(end == line.npos ? line.size() : end + 1);
  }
  return plain;
}

std::string shown(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  line.remove_prefix(begin == line.npos ? line.size() : begin);
  if (line.size() <= kMaxShownLine) return without_controls(line);
  return without_controls(first_bytes(line, kMaxShownLine)) + "...";
}

}  // namespace

Trace read_run_log(ByteStream& bytes) {
  Trace trace;
  trace.path = bytes.path();
  std::map<std::pair<std::string_view, std::string_view>, size_t> places;  // by verdict and meaning
  std::string_view program;
  LineReader lines(bytes);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    std::string_view text = line.substr(0, kMaxMatchedLine);
    std::string plain;
    if (text.find('\x1b') != text.npos) text = plain = without_colours(text);
    const LogRow* known = log_line_for(text);
    if (known == nullptr) continue;
    if (program.empty()) program = known->program;
    const auto [place, is_new] =
        places.try_emplace({known->verdict, known->meaning}, trace.log.size());
    if (!is_new) {
      ++trace.log[place->second].count;
    } else if (trace.log.size() < kMaxLogFindings) {
      trace.log.push_back({shown(text), known->meaning, known->verdict, 1});
    } else {
      places.erase(place);
    }
  }
  check(
      !trace.log.empty(),
      "{}: is none of the files that can be read: a trace of PyTorch's profiler, CSV of Nsight "
      "Compute or Nsight Systems, SQLite of Nsight Systems, a report of Octet, or a log in which a "
      "program says what it runs",
      bytes.path());
  trace.format = fmt::format("log of {}", program);
  return trace;
}

}  // namespace octet::audit
