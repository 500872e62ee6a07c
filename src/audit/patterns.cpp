#include "audit/patterns.h"

#include <algorithm>
#include <utility>

#include "audit/glob.h"
#include "base/error.h"
#include "base/never_destroyed.h"
#include "formats/json.h"
#include "kernel_names_text.h"
#include "log_lines_text.h"

namespace octet::audit {
namespace {

// Templates make names of several KB; whatever tells is at the front of them. Longer lines are
// dumps of something.
constexpr size_t kMaxMatchedBytes = 8192;

ScalarType scalar_type_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ScalarType::other); ++i) {
    if (name_of(static_cast<ScalarType>(i)) == name) return static_cast<ScalarType>(i);
  }
  fail("kernel_names.json: the type \"{}\" is unknown", name);
}

const NameRow& row_for(const std::vector<NameRow>& rows, std::string_view name) {
  static const auto& none = never_destroyed<NameRow>();
  name = name.substr(0, kMaxMatchedBytes);
  const auto fits = [&](const std::string& pattern) { return matches_glob(pattern, name); };
  for (const NameRow& row : rows) {
    if (fits(row.pattern) && std::none_of(row.except.begin(), row.except.end(), fits)) return row;
  }
  return none;
}

}  // namespace

void from_json(const nlohmann::json& value, NameRow& row) {
  row = {.library = value.at("library"),
         .pattern = value.at("pattern"),
         .except = value.value("except", std::vector<std::string>()),
         .type = scalar_type_named(value.value("type", "unknown")),
         .example = value.at("example"),
         .source = value.at("source")};
  const std::string key = value.at("class");
  const auto work = work_class_of(key);
  check(work.has_value(), "kernel_names.json: the class \"{}\" of {} is unknown", key, row.pattern);
  row.work = *work;
}

void from_json(const nlohmann::json& value, LogRow& row) {
  row = {.program = value.at("program"),
         .pattern = value.at("pattern"),
         .verdict = value.at("verdict"),
         .meaning = value.at("meaning"),
         .example = value.at("example"),
         .source = value.at("source"),
         .waits = value.value("waits", false),
         .ends = value.value("ends", "")};
}

const NameRows& name_rows() {
  static const auto& rows = never_destroyed<NameRows>([] {
    const nlohmann::json file = parse_json(kKernelNamesText, "kernel_names.json");
    return NameRows{file.at("kernels"), file.at("ops")};
  }());
  return rows;
}

const std::vector<LogRow>& log_rows() {
  static const auto& rows = never_destroyed<std::vector<LogRow>>(
      parse_json(kLogLinesText, "log_lines.json").at("lines").get<std::vector<LogRow>>());
  return rows;
}

const NameRow& kernel_by_name(std::string_view name) { return row_for(name_rows().kernels, name); }
const NameRow& op_by_name(std::string_view name) { return row_for(name_rows().ops, name); }

// A log has millions of lines, most of which tell nothing.
const LogRow* log_line_for(std::string_view line) {
  static const auto& patterns = never_destroyed<GlobSet>([] {
    std::vector<std::string> all;
    for (const LogRow& row : log_rows()) all.push_back(row.pattern);
    return all;
  }());
  const auto row = patterns.first_match(line.substr(0, kMaxMatchedBytes));
  return row ? &log_rows()[*row] : nullptr;
}

}  // namespace octet::audit
