// From a caption's values to its text.
#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "formats/text.h"
#include "models/ideogram4/caption.h"
#include "models/ideogram4/caption_schema.h"

namespace octet::ideogram4 {
namespace {

using nlohmann::ordered_json;
using schema::Keys;

// Known keys first, in their order. What has that order stays as it is, with unknown keys where the
// author put them, and so do values that are no objects.
ordered_json in_order(const ordered_json& value, Keys keys) {
  if (!value.is_object()) return value;
  ordered_json sorted = ordered_json::object();
  for (const std::string_view key : keys) {
    if (const auto found = value.find(key); found != value.end()) sorted[found.key()] = *found;
  }
  auto next = sorted.begin();
  for (const auto& item : value.items()) {
    if (next != sorted.end() && item.key() == next.key()) ++next;
  }
  if (next == sorted.end()) return value;
  for (const auto& item : value.items()) {
    if (!sorted.contains(item.key())) sorted[item.key()] = item.value();
  }
  return sorted;
}

// Calls change(member) for the member `key` of an object that has it.
template <class Change>
void change_member(ordered_json& object, const char* key, Change change) {
  if (!object.is_object()) return;
  if (const auto found = object.find(key); found != object.end()) change(*found);
}

template <class Change>
void change_elements(ordered_json& caption, Change change) {
  change_member(caption, "compositional_deconstruction", [&](ordered_json& part) {
    change_member(part, "elements", [&](ordered_json& elements) {
      if (!elements.is_array()) return;
      for (ordered_json& element : elements) change(element);
    });
  });
}

void mend_palette(ordered_json& owner) {
  change_member(owner, "color_palette", [](ordered_json& palette) {
    if (!palette.is_array()) return;
    for (ordered_json& color : palette) {
      if (!color.is_string()) continue;
      auto& text = color.get_ref<std::string&>();
      if (!schema::is_color(text, true)) continue;
      for (char& c : text) {
        if (c >= 'a' && c <= 'f') c = static_cast<char>(c - 'a' + 'A');
      }
    }
  });
}

}  // namespace

std::string_view without_space_around(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::string serialise_caption(const ordered_json& caption) {
  ordered_json sorted = in_order(caption, schema::kRoot);
  change_member(sorted, "style_description",
                [](ordered_json& style) { style = in_order(style, schema::kStyle); });
  change_member(sorted, "compositional_deconstruction",
                [](ordered_json& part) { part = in_order(part, schema::kDeconstruction); });
  change_elements(sorted,
                  [](ordered_json& element) { element = in_order(element, schema::kElement); });
  return sorted.dump();
}

ordered_json mend_caption(const ordered_json& caption) {
  ordered_json mended = caption;
  if (mended.is_object()) mended.erase(std::string(schema::kExpanderKey));
  change_member(mended, "style_description", mend_palette);
  change_elements(mended, mend_palette);
  return mended;
}

std::string wrap_plain_text(std::string_view plain_text) {
  const std::string text(without_space_around(plain_text));
  check(!text.empty(), "caption: the plain text is empty, expected a description of the picture");
  check(text.size() <= kMaxCaptionBytes,
        "caption: the plain text is {} bytes long, above the limit of {}", text.size(),
        kMaxCaptionBytes);
  check(text[0] != '{',
        "caption: the text begins with '{{' and is not plain text; check it as JSON");
  check(is_utf8(text) && text.find('\0') == text.npos,
        "caption: the plain text is not UTF-8, expected UTF-8 without NUL bytes");
  ordered_json caption;
  caption["high_level_description"] = text;
  caption["compositional_deconstruction"]["background"] = text;
  caption["compositional_deconstruction"]["elements"] = ordered_json::array();
  const std::string wrapped = serialise_caption(caption);
  check(wrapped.size() <= kMaxCaptionBytes,
        "caption: the wrapped text is {} bytes long, above the limit of {}; shorten the plain text",
        wrapped.size(), kMaxCaptionBytes);
  return wrapped;
}

}  // namespace octet::ideogram4
