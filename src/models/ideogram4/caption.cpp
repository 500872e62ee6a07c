#include "models/ideogram4/caption.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"
#include "models/ideogram4/caption_rules.h"

namespace octet {
namespace {

bool is_error(const CaptionFinding& finding) {
  return finding.severity == CaptionFinding::Severity::error;
}

}  // namespace

bool CaptionReport::valid() const { return std::ranges::none_of(findings, is_error); }

}  // namespace octet

namespace octet::ideogram4 {
namespace {

static_assert(kMaxCaptionBytes <= kMaxOrderedJsonBytes);

// A character outside of ASCII is written as \uXXXX, and none literally: training captions are
// literal UTF-8.
bool is_written_in_ascii_escapes(std::string_view text) {
  bool escapes = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) return false;
    if (text[i] != '\\') continue;
    ++i;  // an escaped backslash begins no escape
    if (i + 4 >= text.size() || text[i] != 'u') continue;
    unsigned value = 0;
    const char* const end = text.data() + i + 5;
    const bool digits = std::from_chars(end - 4, end, value, 16).ptr == end;
    escapes = escapes || (digits && value >= 0x80);
  }
  return escapes;
}

void add_error(CaptionReport& report, const Sentence& rule, bool fixable = false) {
  report.findings.push_back({"$", rule, CaptionFinding::Severity::error, fixable});
}

bool looks_like_json(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == '{' || text[first] == '[');
}

std::string too_long(size_t bytes) {
  return fmt::format("the caption is {} bytes long, above the limit of {}", bytes,
                     kMaxCaptionBytes);
}

bool can_be_mended(const CaptionReport& report) {
  return std::ranges::all_of(report.findings, [](const CaptionFinding& finding) {
    return !is_error(finding) || finding.fixable;
  });
}

// "$.a: what is wrong; $.b: what is wrong": those that `is_to_be_told` says.
template <class IsToBeTold>
Sentence listed(const CaptionReport& report, const IsToBeTold& is_to_be_told) {
  constexpr int kMostListed = 20;
  Sentence list;
  int count = 0;
  for (const CaptionFinding& finding : report.findings) {
    if (!is_to_be_told(finding) || ++count > kMostListed) continue;
    list = sentence("{}{}{}: {}", list, list.empty() ? "" : "; ", finding.path, finding.rule);
  }
  if (count <= kMostListed) return list;
  return sentence("{}; and {} more, which `octet caption check` lists", list, count - kMostListed);
}

}  // namespace

CaptionReport check_caption(std::string_view text) {
  CaptionReport report;
  if (text.size() > kMaxCaptionBytes) {
    add_error(report, too_long(text.size()));
    return report;
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  if (is_written_in_ascii_escapes(text)) {
    add_error(report, "non-ASCII characters are written as \\uXXXX, expected literal UTF-8",
              /*fixable=*/true);
  }
  nlohmann::ordered_json caption;
  try {
    caption = parse_ordered_json(text, "caption");
  } catch (const Error& error) {
    std::string_view fault = error.what();
    fault.remove_prefix(std::string_view("caption: ").size());
    if (looks_like_json(text)) {
      add_error(report, std::string(fault));
    } else if (!is_utf8(text)) {
      add_error(report, "the caption is neither JSON nor text in UTF-8");
    } else {
      add_error(report, sentence("{}; a caption is a JSON object, and plain text becomes one "
                                 "with `prompt` or `wrap_text`",
                                 fault));
    }
    const std::string_view plain = without_space_around(text);
    if (!is_utf8(plain) || plain.find('\0') != plain.npos) return report;
    find_control_tokens(plain, report.findings);
    report.as_given = plain;
    return report;
  }
  check_rules(caption, report.findings);
  find_control_tokens(caption, report.findings);
  report.as_given = serialise_caption(mend_caption(caption));
  // Numbers in place of strings may have become longer.
  if (report.as_given.size() > kMaxCaptionBytes) {
    add_error(report, too_long(report.as_given.size()));
    report.as_given.clear();
  }
  if (can_be_mended(report)) report.canonical = report.as_given;
  return report;
}

std::string caption_for_model(std::string_view text, const std::string& what, bool any) {
  CaptionReport report = check_caption(text);
  if (report.valid()) return std::move(report.canonical);
  if (any && !report.as_given.empty()) return std::move(report.as_given);
  Sentence remedy;
  if (any) {
    remedy = sentence(
        "; even `any_caption` does not accept text that is empty, too long, not UTF-8 or has NUL "
        "bytes");
  } else if (!report.canonical.empty()) {
    remedy = "; `octet caption check --fix` repairs it";
  } else if (!report.as_given.empty()) {
    remedy = sentence("; `any_caption` runs it anyway");
  }
  // Warnings, too, so that one correction is enough.
  const Sentence warnings =
      listed(report, [](const CaptionFinding& finding) { return !is_error(finding); });
  fail("{}: {}{}{}{}", what, listed(report, is_error), remedy,
       warnings.empty() ? "" : "; also, as warnings: ", warnings);
}

std::vector<Sentence> caption_warnings(std::string_view text, const std::string& what, bool any) {
  const Sentence list = listed(check_caption(text), [any](const CaptionFinding& finding) {
    return any || !is_error(finding);
  });
  if (list.empty()) return {};
  return {sentence("{}: {}", what, list)};
}

}  // namespace octet::ideogram4
