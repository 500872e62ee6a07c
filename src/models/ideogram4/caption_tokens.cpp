// Control tokens in captions.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "models/ideogram4/caption_rules.h"
#include "models/ideogram4/caption_schema.h"
#include "models/tokenizer/added_tokens.h"

namespace octet::ideogram4 {
namespace {

using nlohmann::ordered_json;

bool is_known(std::string_view key) {
  const auto among = [&](schema::Keys keys) { return std::ranges::find(keys, key) != keys.end(); };
  return among(schema::kRoot) || among(schema::kStyle) || among(schema::kDeconstruction) ||
         among(schema::kElement);
}

void find_in_text(std::string_view text, const std::string& path,
                  std::vector<CaptionFinding>& findings) {
  for (const std::string_view token : tokenizer::kAddedTokens) {
    if (text.find(token) == text.npos) continue;
    findings.push_back(
        {path, fmt::format("the tokenizer reads {} as a control token, not as text", token),
         CaptionFinding::Severity::warning, /*fixable=*/false});
  }
}

// Recursion is as deep as the JSON, whose depth the parser bounds.
void find_in_value(const ordered_json& value, const std::string& path,
                   std::vector<CaptionFinding>& findings) {
  if (value.is_string()) find_in_text(value.get_ref<const std::string&>(), path, findings);
  if (value.is_object()) {
    for (const auto& item : value.items()) {
      find_in_text(item.key(), path, findings);
      find_in_value(item.value(), is_known(item.key()) ? path + "." + item.key() : path, findings);
    }
  }
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      find_in_value(value[i], fmt::format("{}[{}]", path, i), findings);
    }
  }
}

}  // namespace

void find_control_tokens(const ordered_json& caption, std::vector<CaptionFinding>& findings) {
  find_in_value(caption, "$", findings);
}

void find_control_tokens(std::string_view text, std::vector<CaptionFinding>& findings) {
  find_in_text(text, "$", findings);
}

}  // namespace octet::ideogram4
