// What is wrong with a caption.
#include <fmt/format.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const CaptionFinding& finding) {
  json = {{"path", finding.path},
          {"rule", finding.rule.text()},
          {"severity", finding.severity},
          {"fixable", finding.fixable}};
}

std::string to_json(const CaptionReport& report) try {
  return document("octet.caption.check/1", {{"valid", report.valid()},
                                            {"findings", report.findings},
                                            {"caption", known(report.canonical)}});
} catch (...) {
  rethrow_as_error();
}

// One line for each finding; a brief text leaves the warnings out.
std::string to_text(const CaptionReport& report, Detail detail) try {
  std::string lines;
  for (const auto& finding : report.findings) {
    const bool is_warning = finding.severity == CaptionFinding::Severity::warning;
    if (is_warning && detail == Detail::brief) continue;
    lines += fmt::format("{}: {}: {}\n", word_of(finding.severity), finding.path,
                         printable(finding.rule));
  }
  return lines;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
