// Where a caption leaves what a model was trained for.
#include <algorithm>

#include "base/error.h"
#include "formats/text.h"
#include "models/ideogram4/caption.h"
#include "models/trained_for.h"

namespace octet::ideogram4 {
namespace {

using models::TrainedFor;
using nlohmann::json;

std::string string_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string shortened(std::string text) {
  constexpr size_t kMost = 40;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// The first character that is not one of these, whole.
std::string foreign_character(const std::string& text, const std::string& characters) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n' || characters.find(text[at]) != characters.npos) continue;
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    return text.substr(at, end - at);
  }
  return "";
}

void check_text(const std::string& text, const TrainedFor& model,
                std::vector<std::string>& reasons) {
  const std::string quoted = in_quotes(shortened(text));
  const std::string foreign =
      model.characters.empty() ? "" : foreign_character(text, model.characters);
  if (foreign == " ") {
    reasons.push_back(fmt::format("the text {} has a space (make two elements)", quoted));
  } else if (!foreign.empty()) {
    reasons.push_back(
        fmt::format("the text {} has {}, which it cannot paint", quoted, in_quotes(foreign)));
  }
  if (!model.line_breaks && text.find('\n') != text.npos) {
    reasons.push_back(fmt::format("the text {} has a line break (make two elements)", quoted));
  }
  if (model.most_letters > 0 && text.size() > static_cast<size_t>(model.most_letters)) {
    reasons.push_back(fmt::format("the text {} has {} letters, expected {} at most", quoted,
                                  text.size(), model.most_letters));
  }
}

// "heart attack" names a heart, and is none: a word that training never showed says nothing.
void check_words(const std::string& what, const std::string& description, const TrainedFor& model,
                 std::vector<std::string>& reasons) {
  constexpr size_t kMost = 3;
  const std::vector<std::string> unknown = model.unknown_words(description);
  std::string list;
  for (size_t i = 0; i < std::min(unknown.size(), kMost); ++i) {
    list += (i == 0 ? "" : ", ") + in_quotes(shortened(unknown[i]));
  }
  if (unknown.size() > kMost) list += fmt::format(" and {} more", unknown.size() - kMost);
  if (list.empty()) return;
  reasons.push_back(fmt::format("{}, with {}, which it never saw", what, list));
}

}  // namespace

std::vector<std::string> leaves_training(const std::string& prompt, const TrainedFor& model) {
  const json caption = json::parse(prompt, nullptr, /*allow_exceptions=*/false);
  const std::string plain =
      model.plain_text.empty() ? ""
                               : fmt::format("it is plain text; for that use {}", model.plain_text);
  if (!caption.is_object()) return plain.empty() ? std::vector<std::string>{} : std::vector{plain};
  const json parts = caption.value("compositional_deconstruction", json::object());
  const json elements = parts.is_object() ? parts.value("elements", json::array()) : json::array();
  if (!elements.is_array()) return {};
  const std::string summary = string_at(caption, "high_level_description");
  const std::string background = string_at(parts, "background");
  if (elements.empty() && summary.empty() && background.empty()) {
    return {"it is JSON that does not say what is on the picture"};
  }
  // As wrap_plain_text() makes it.
  if (!plain.empty() && elements.empty() && background == summary) return {plain};
  std::vector<std::string> reasons;
  check_words("the background " + in_quotes(shortened(background)), background, model, reasons);
  if (model.most_elements > 0 && elements.size() > static_cast<size_t>(model.most_elements)) {
    reasons.push_back(
        fmt::format("{} elements, expected {} at most", elements.size(), model.most_elements));
  }
  for (const json& element : elements) {
    if (!element.is_object()) continue;
    const std::string desc = string_at(element, "desc");
    const bool is_text = string_at(element, "type") == "text";
    if (is_text) check_text(string_at(element, "text"), model, reasons);
    const std::string name = in_quotes(shortened(desc));
    if (!is_text && !model.knows(desc)) {
      reasons.push_back(fmt::format("the object {}", name));
    } else {
      check_words(fmt::format("the {} {}", is_text ? "letters" : "object", name), desc, model,
                  reasons);
    }
    if (model.boxes && !element.contains("bbox")) {
      reasons.push_back(fmt::format("no bbox of {}", name));
    }
  }
  return reasons;
}

}  // namespace octet::ideogram4
