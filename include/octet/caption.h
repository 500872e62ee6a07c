// The JSON caption that Ideogram 4 takes as its prompt: checks it and converts it to the form the
// model was trained on.
//
//   octet::CaptionReport report = octet::check_caption(octet::read_caption("poster.json"));
//   for (const octet::CaptionFinding& finding : report.findings)
//     std::cout << finding.path << ": " << finding.rule << "\n";
//   if (report.valid()) generate(report.canonical);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "octet/export.h"
#include "octet/sentence.h"
#include "octet/words.h"

namespace octet {

struct CaptionFinding {
  // Errors are refused by the model's official verifier, or are a `true` in a box, which it accepts
  // as a number by accident. Warnings are unknown keys, and what the verifier accepts although it
  // is hardly ever intended.
  enum class Severity { error, warning };

  std::string path =
      {};  // "$.compositional_deconstruction.elements[2].bbox"; "$" is the whole caption
  Sentence rule = {};  // what was expected and what was found
  Severity severity = Severity::error;
  bool fixable = false;  // `canonical` fixes it without changing the meaning
};
template <>
struct Words<CaptionFinding::Severity> {
  static constexpr Word<CaptionFinding::Severity> list[] = {
      {CaptionFinding::Severity::error, "error"}, {CaptionFinding::Severity::warning, "warning"}};
};

struct CaptionReport {
  std::vector<CaptionFinding> findings = {};  // in the order of the official verifier's checks
  // The caption as passed to the model: compact JSON, keys in the order of its training captions,
  // literal UTF-8. Lower-case colours, and the aspect_ratio that prompt expanders leave at the
  // root, are fixed too. Empty if an error remains that is not fixable.
  std::string canonical = {};
  // What is passed to the model if errors are ignored (PictureRequest::any_caption): the same,
  // fixed as far as possible, or text that is not JSON, without surrounding white space. Empty for
  // what a tokenizer cannot take: empty text, NUL bytes, invalid UTF-8, too long.
  std::string as_given = {};

  OCTET_API bool valid() const;  // no errors
};

OCTET_API CaptionReport check_caption(std::string_view text);

// A minimal caption that says `plain_text`. The model was trained on captions only: with plain text
// its pictures are worse, and it often paints its own refusal. Throws Error for a text that is
// empty, not UTF-8, too long, or looks like JSON.
OCTET_API std::string wrap_plain_text(std::string_view plain_text);

// The bytes of a file, or of standard input for "-". Throws Error with its name if it cannot be
// read or is longer than any caption.
OCTET_API std::string read_caption(const std::string& path);

}  // namespace octet
