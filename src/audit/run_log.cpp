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
// Of lines that tell whose the lines before them are.
constexpr std::string_view kOfTextEncoder = "text_encoder", kOfModel = "model";

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

// What lines tell, each meaning once.
class Findings {
 public:
  explicit Findings(std::vector<LogFinding>& log) : log_(log) {}

  void add(const LogRow& row, const std::string& verdict, const std::string& line, int64_t count) {
    const auto [place, is_new] = places_.try_emplace({verdict, row.meaning}, log_.size());
    if (!is_new) {
      log_[place->second].count += count;
    } else if (log_.size() < kMaxLogFindings) {
      log_.push_back({line, row.meaning, verdict, count});
    } else {
      places_.erase(place);
    }
  }

 private:
  std::vector<LogFinding>& log_;
  std::map<std::pair<std::string, std::string>, size_t> places_;  // by verdict and meaning
};

}  // namespace

Trace read_run_log(ByteStream& bytes) {
  Trace trace;
  trace.path = bytes.path();
  Findings findings(trace.log);
  std::string_view program;
  // A checkpoint is described before its program says what it is for.
  struct Waiting {
    const LogRow* row;
    std::string line;
  };
  std::vector<Waiting> waiting;
  const auto settle = [&](bool of_text_encoder) {
    for (const Waiting& each : waiting) {
      findings.add(*each.row, of_text_encoder ? "info" : each.row->verdict, each.line, 1);
    }
    waiting.clear();
  };
  LineReader lines(bytes);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    std::string_view text = line.substr(0, kMaxMatchedLine);
    std::string plain;
    if (text.find('\x1b') != text.npos) text = plain = without_colours(text);
    const LogRow* known = log_line_for(text);
    if (known == nullptr) continue;
    if (program.empty()) program = known->program;
    if (known->waits && waiting.size() < kMaxLogFindings) {
      waiting.push_back({known, shown(text)});
      continue;
    }
    if (known->ends == kOfTextEncoder || known->ends == kOfModel) {
      settle(known->ends == kOfTextEncoder);
    }
    findings.add(*known, known->verdict, shown(text), 1);
  }
  settle(false);
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
