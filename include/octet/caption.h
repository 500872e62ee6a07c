// The JSON caption that Ideogram 4 takes as its prompt: checks it, and brings it into the form that
// the model was trained on.
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
  // An error is refused by the model's official verifier, or is a `true` in a box, which that takes
  // for a number by accident. A warning is an unknown key, or what the verifier accepts and hardly
  // anybody means.
  enum class Severity { error, warning };

  std::string path;  // "$.compositional_deconstruction.elements[2].bbox"; "$" is the whole caption
  Sentence rule;     // what was expected and what is there
  Severity severity = Severity::error;
  bool fixable = false;  // `canonical` mends it without changing what the caption means
};
template <>
struct Words<CaptionFinding::Severity> {
  static constexpr Word<CaptionFinding::Severity> list[] = {
      {CaptionFinding::Severity::error, "error"}, {CaptionFinding::Severity::warning, "warning"}};
};

struct CaptionReport {
  std::vector<CaptionFinding> findings;  // in the order of the official verifier's checks
  // The caption as the model gets it: compact JSON, keys in the order of its training captions,
  // literal UTF-8. Also mended are lower-case colours and the aspect_ratio that prompt expanders
  // leave at the root. Empty when an error remains that is not fixable.
  std::string canonical;
  // What the model gets where errors do not matter (GenerateRequest::any_caption): the same mended
  // as far as it can be, or text that is no JSON without the white space around it. Empty for what
  // is no text for a tokenizer: nothing at all, NUL bytes, other than UTF-8, too long.
  std::string as_given;

  OCTET_API bool valid() const;  // no errors
};

OCTET_API CaptionReport check_caption(std::string_view text);

// A minimal caption that says `plain_text`. The model knows captions only: on plain text its
// pictures are worse, and it often paints its own refusal. Throws Error for a text that is empty,
// not UTF-8, too long, or looks like JSON.
OCTET_API std::string wrap_plain_text(std::string_view plain_text);

// The bytes of a file, or of standard input for "-". Throws Error naming it when it cannot be read
// or is longer than any caption.
OCTET_API std::string read_caption(const std::string& path);

}  // namespace octet
