#include "audit/log_lines.h"

#include <nlohmann/json.hpp>

#include "audit/glob.h"
#include "base/error.h"
#include "log_lines_text.h"

namespace octet::audit {
namespace {

// Longer lines are dumps of something.
constexpr size_t kMaxMatchedLineBytes = 8192;

std::vector<LogRow> read_log_rows() {
  std::vector<LogRow> rows;
  try {
    const auto file = nlohmann::json::parse(kLogLinesText);
    for (const auto& value : file.at("lines")) {
      rows.push_back({.program = value.at("program"),
                      .pattern = value.at("pattern"),
                      .verdict = value.at("verdict"),
                      .meaning = value.at("meaning"),
                      .example = value.at("example"),
                      .source = value.at("source")});
    }
  } catch (const nlohmann::json::exception& error) {
    fail("log_lines.json: {}", error.what());
  }
  return rows;
}

std::vector<LogLine> log_lines_of(const std::vector<LogRow>& rows) {
  std::vector<LogLine> lines;
  lines.reserve(rows.size());
  for (const LogRow& row : rows) lines.push_back({row.program, row.verdict, row.meaning});
  return lines;
}

}  // namespace

const std::vector<LogRow>& log_rows() {
  static const std::vector<LogRow> rows = read_log_rows();
  return rows;
}

const LogLine* log_line_for(std::string_view line) {
  static const std::vector<LogLine> lines = log_lines_of(log_rows());
  line = line.substr(0, kMaxMatchedLineBytes);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (matches_glob(log_rows()[i].pattern, line)) return &lines[i];
  }
  return nullptr;
}

}  // namespace octet::audit
