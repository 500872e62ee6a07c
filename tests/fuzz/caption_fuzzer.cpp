// libFuzzer target: any text gets findings of one line, or a canonical caption that is valid,
// canonical itself, and in which no byte can be gained or lost by reading it again. What is run in
// spite of its errors is UTF-8 as well.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/text.h"
#include "models/ideogram4/caption.h"

namespace {

void demand(bool condition) {
  if (!condition) std::abort();
}

void check_report(std::string_view text) {
  const octet::CaptionReport report = octet::ideogram4::check_caption(text);
  bool mendable = true;
  for (const octet::CaptionFinding& finding : report.findings) {
    demand(finding.path.starts_with("$") && finding.path.find('\n') == std::string::npos);
    demand(!finding.rule.empty() && finding.rule.text().find('\n') == std::string::npos);
    demand(octet::is_utf8(finding.rule));
    const bool is_error = finding.severity == octet::CaptionFinding::Severity::error;
    mendable = mendable && (!is_error || finding.fixable);
  }
  demand(mendable == !report.canonical.empty());
  demand(octet::is_utf8(report.as_given));
  demand(!mendable || report.as_given == report.canonical);
  if (!mendable) return;
  demand(octet::is_utf8(report.canonical));
  const octet::CaptionReport again = octet::ideogram4::check_caption(report.canonical);
  demand(again.valid() && again.canonical == report.canonical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_report(text);
  try {
    const std::string wrapped = octet::ideogram4::wrap_plain_text(text);
    demand(octet::ideogram4::caption_for_model(wrapped, "fuzz") == wrapped);
  } catch (const octet::Error& error) {
    demand(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
