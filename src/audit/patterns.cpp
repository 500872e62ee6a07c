#include "audit/patterns.h"

#include "base/error.h"
#include "formats/json.h"
#include "kernel_names_text.h"
#include "log_lines_text.h"

namespace octet::audit {
namespace {

// Templates make names of several KB; whatever tells is at the front of them. Longer lines are
// dumps of something.
constexpr size_t kMaxMatchedBytes = 8192;

// What stands for one character at the start of a pattern: itself, '?' or a set.
std::string_view glob_element(std::string_view pattern) {
  const size_t end = pattern.starts_with('[') ? pattern.find(']', 1) : std::string_view::npos;
  return pattern.substr(0, end == std::string_view::npos ? 1 : end + 1);
}

bool glob_element_fits(std::string_view element, char c) {
  if (element.size() == 1) return element[0] == '?' || element[0] == c;
  const std::string_view set = element.substr(1, element.size() - 2);
  for (size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    if (is_range ? set[i] <= c && c <= set[i + 2] : set[i] == c) return true;
    if (is_range) i += 2;
  }
  return false;
}

ScalarType scalar_type_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ScalarType::other); ++i) {
    if (name_of(static_cast<ScalarType>(i)) == name) return static_cast<ScalarType>(i);
  }
  fail("kernel_names.json: the type \"{}\" is unknown", name);
}

template <class Row>
const Row* first_match(const std::vector<Row>& rows, std::string_view text) {
  text = text.substr(0, kMaxMatchedBytes);
  for (const Row& row : rows) {
    if (matches_glob(row.pattern, text)) return &row;
  }
  return nullptr;
}

const NameRow& row_for(const std::vector<NameRow>& rows, std::string_view name) {
  static const NameRow none;
  const NameRow* row = first_match(rows, name);
  return row == nullptr ? none : *row;
}

}  // namespace

void from_json(const nlohmann::json& value, NameRow& row) {
  row = {.library = value.at("library"),
         .pattern = value.at("pattern"),
         .type = scalar_type_named(value.value("type", "unknown")),
         .example = value.at("example"),
         .source = value.at("source")};
  const std::string key = value.at("class");
  const auto work = work_class_of(key);
  check(work.has_value(), "kernel_names.json: the class \"{}\" of {} is unknown", key, row.pattern);
  row.work = *work;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LogRow, program, pattern, verdict, meaning, example, source)

bool matches_glob(std::string_view pattern, std::string_view text) {
  constexpr size_t kNowhere = std::string_view::npos;
  std::string_view behind_star;  // what stands behind the last '*' so far, and
  size_t tried = kNowhere;       // where in the text it was tried; nowhere: there was none
  for (size_t at = 0; at < text.size();) {
    const std::string_view element = glob_element(pattern);
    if (element == "*") {
      pattern.remove_prefix(1);
      if (pattern.empty()) return true;
      behind_star = pattern;
      tried = at;
    } else if (!element.empty() && glob_element_fits(element, text[at])) {
      pattern.remove_prefix(element.size());
      ++at;
    } else {
      if (tried == kNowhere) return false;
      const bool is_plain = behind_star[0] != '?' && behind_star[0] != '[' && behind_star[0] != '*';
      tried = is_plain ? text.find(behind_star[0], tried + 1) : tried + 1;
      if (tried == kNowhere) return false;
      pattern = behind_star;
      at = tried;
    }
  }
  return pattern.find_first_not_of('*') == kNowhere;
}

const NameRows& name_rows() {
  static const NameRows rows = [] {
    const nlohmann::json file = parse_json(kKernelNamesText, "kernel_names.json");
    return NameRows{file.at("kernels"), file.at("ops")};
  }();
  return rows;
}

const std::vector<LogRow>& log_rows() {
  static const std::vector<LogRow> rows =
      parse_json(kLogLinesText, "log_lines.json").at("lines").get<std::vector<LogRow>>();
  return rows;
}

const NameRow& kernel_by_name(std::string_view name) { return row_for(name_rows().kernels, name); }
const NameRow& op_by_name(std::string_view name) { return row_for(name_rows().ops, name); }
const LogRow* log_line_for(std::string_view line) { return first_match(log_rows(), line); }

}  // namespace octet::audit
