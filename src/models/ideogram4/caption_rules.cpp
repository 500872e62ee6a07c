#include "models/ideogram4/caption_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/closest_word.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"
#include "models/ideogram4/caption_schema.h"

namespace octet::ideogram4 {
namespace {

using nlohmann::ordered_json;
using schema::Keys;

constexpr std::ptrdiff_t kMostNamed = 8;  // keys, in one finding

bool has(Keys keys, std::string_view key) { return std::ranges::find(keys, key) != keys.end(); }

// Reads the caption in the order of the official verifier, but goes on where that stops, so that
// one reading finds everything. Paths are made of known keys and of indices; keys that the author
// invented appear quoted, in sentences.
class Rules {
 public:
  explicit Rules(std::vector<CaptionFinding>& findings) : findings_(findings) {}

  void check_root(const ordered_json& root) {
    if (!is_object(root, "$")) return;
    unknown_keys(root, "$", schema::kRoot);
    if (root.contains(schema::kExpanderKey)) {
      add({"$.aspect_ratio",
           "aspect_ratio belongs to the image's size, not to the caption; it is left out",
           CaptionFinding::Severity::warning, /*fixable=*/true});
    }
    const std::string description = "$.high_level_description";
    if (const auto found = root.find("high_level_description"); found == root.end()) {
      warn(description, "is missing; one or two sentences about the whole picture help the model");
    } else if (!found->is_string()) {
      wrong_type(description, "a string", *found);
    }
    if (const auto style = root.find("style_description"); style != root.end()) {
      check_style(*style, "$.style_description");
    }
    const std::string_view key = "compositional_deconstruction";
    const std::string deconstruction = "$.compositional_deconstruction";
    if (const auto found = root.find(key); found != root.end()) {
      check_deconstruction(*found, deconstruction);
    } else {
      error(deconstruction, "is missing, expected an object of background and elements" +
                                meant_by(root, {&key, 1}, schema::kRoot));
    }
  }

 private:
  void check_style(const ordered_json& style, const std::string& path) {
    if (!is_object(style, path)) return;
    unknown_keys(style, path, schema::kStyle);
    const bool photo = style.contains("photo"), art = style.contains("art_style");
    if (photo == art) {
      error(path, fmt::format("expected exactly one of photo and art_style, got {}{}",
                              photo ? "both" : "neither",
                              photo ? "" : meant_by(style, schema::kStyleKinds, schema::kStyle)));
    }
    check_keys(style, path, schema::kStyle,
               photo && art ? Keys(schema::kStyle)
               : photo      ? Keys(schema::kPhotoStyle)
               : art        ? Keys(schema::kArtStyle)
                            : Keys(schema::kAnyStyle));
    for (const char* key : {"aesthetics", "lighting", "photo", "medium", "art_style"}) {
      expect_string(style, path, key);
    }
    check_palette(style, path, schema::kMostStyleColors);
  }

  void check_deconstruction(const ordered_json& part, const std::string& path) {
    if (!is_object(part, path)) return;
    const auto missing = [&](const std::string_view key, const char* expected) {
      error(fmt::format("{}.{}", path, key),
            fmt::format("is missing, expected {}{}", expected,
                        meant_by(part, {&key, 1}, schema::kDeconstruction)));
    };
    const auto background = part.find("background"), elements = part.find("elements");
    if (background == part.end()) {
      missing("background", "a string");
    } else if (!background->is_string()) {
      wrong_type(path + ".background", "a string", *background);
    }
    if (elements == part.end()) missing("elements", "an array; it may be empty");
    check_order(part, path, schema::kDeconstruction);
    unknown_keys(part, path, schema::kDeconstruction);
    if (elements == part.end()) return;
    if (!elements->is_array()) {
      wrong_type(path + ".elements", "an array", *elements);
      return;
    }
    for (size_t i = 0; i < elements->size(); ++i) {
      check_element((*elements)[i], fmt::format("{}.elements[{}]", path, i));
    }
  }

  void check_element(const ordered_json& element, const std::string& path) {
    if (!is_object(element, path)) return;
    unknown_keys(element, path, schema::kElement);
    const bool is_text = has_type(element, "text"), is_obj = has_type(element, "obj");
    if (!is_text && !is_obj) check_type(element, path);
    // Of an unknown type, only what both types have is demanded.
    check_keys(element, path, schema::kElement,
               is_text  ? Keys(schema::kText)
               : is_obj ? Keys(schema::kObject)
                        : Keys(schema::kAnyElement));
    if (is_obj && element.contains("text")) {
      error(path + ".text", "belongs to elements of type \"text\", and this is an \"obj\"");
    }
    if (const auto box = element.find("bbox"); box != element.end()) {
      check_box(*box, path + ".bbox");
    }
    expect_string(element, path, "text");
    expect_string(element, path, "desc");
    check_palette(element, path, schema::kMostElementColors);
  }

  static bool has_type(const ordered_json& element, const char* name) {
    const auto type = element.find("type");
    return type != element.end() && *type == name;
  }

  void check_type(const ordered_json& element, const std::string& path) {
    const std::string_view key = "type";
    const auto type = element.find(key);
    if (type == element.end()) {
      error(path + ".type", "is missing, expected \"obj\" or \"text\"" +
                                meant_by(element, {&key, 1}, schema::kElement));
      return;
    }
    std::string hint;
    if (type->is_string()) {
      const auto meant = closest_word(type->get_ref<const std::string&>(), schema::kTypes);
      if (meant) hint = fmt::format("; did you mean \"{}\"?", *meant);
    }
    error(path + ".type",
          fmt::format("expected \"obj\" or \"text\", got {}{}", describe(*type), hint));
  }

  void check_box(const ordered_json& box, const std::string& path) {
    if (!box.is_array() || box.size() != 4) {
      wrong_type(path, "an array of 4 integers, [y_min, x_min, y_max, x_max]", box);
      return;
    }
    bool whole = true;
    for (size_t i = 0; i < 4; ++i) {
      if (box[i].is_number_integer()) continue;
      wrong_type(fmt::format("{}[{}]", path, i), "an integer", box[i]);
      whole = false;
    }
    if (!whole) return;
    for (size_t i = 0; i < 4; ++i) {
      if (box[i] >= 0 && box[i] <= schema::kBoxSide) continue;
      error(fmt::format("{}[{}]", path, i),
            fmt::format("expected a coordinate from 0 to {}, got {}", schema::kBoxSide,
                        describe(box[i])));
    }
    for (size_t axis = 0; axis < 2; ++axis) {
      if (box[axis] <= box[axis + 2]) continue;
      const char name = axis == 0 ? 'y' : 'x';
      error(path, fmt::format("{0}_min is {1}, above {0}_max, {2}; the order is "
                              "[y_min, x_min, y_max, x_max]",
                              name, describe(box[axis]), describe(box[axis + 2])));
    }
  }

  void check_palette(const ordered_json& owner, const std::string& owner_path, size_t most) {
    const auto palette = owner.find("color_palette");
    if (palette == owner.end()) return;
    const std::string path = owner_path + ".color_palette";
    if (!palette->is_array()) {
      wrong_type(path, "an array of colors", *palette);
      return;
    }
    if (palette->size() > most) {
      error(path, fmt::format("expected at most {} colors, got {}", most, palette->size()));
    }
    for (size_t i = 0; i < palette->size(); ++i) {
      const ordered_json& color = (*palette)[i];
      const std::string_view text =
          color.is_string() ? std::string_view(color.get_ref<const std::string&>()) : "";
      if (schema::is_color(text, false)) continue;
      add({fmt::format("{}[{}]", path, i),
           fmt::format("expected a color such as \"#1A2B3C\" with upper-case digits, got {}",
                       describe(color)),
           CaptionFinding::Severity::error, schema::is_color(text, true)});
    }
  }

  // Every required one of `expected` is there, and those that are there are in its order.
  void check_keys(const ordered_json& object, const std::string& path, Keys known, Keys expected) {
    std::vector<std::string_view> missing;
    for (const std::string_view key : expected) {
      if (!object.contains(key) && !has(schema::kOptional, key)) missing.push_back(key);
    }
    // A missing type has an error of its own.
    std::erase(missing, "type");
    if (!missing.empty()) {
      error(path, fmt::format("{} {} missing, expected {}{}", fmt::join(missing, ", "),
                              missing.size() == 1 ? "is" : "are", fmt::join(expected, ", "),
                              meant_by(object, missing, known)));
    }
    check_order(object, path, expected);
  }

  void check_order(const ordered_json& object, const std::string& path, Keys expected) {
    std::vector<std::string_view> in_order, as_written;
    for (const std::string_view key : expected) {
      if (object.contains(key)) in_order.push_back(key);
    }
    for (const auto& item : object.items()) {
      if (has(expected, item.key())) as_written.push_back(item.key());
    }
    if (as_written != in_order) {
      fixable(path, fmt::format("the keys are in the order {}, expected {}",
                                fmt::join(as_written, ", "), fmt::join(in_order, ", ")));
    }
  }

  // "; "descr" seems to stand for desc" for each of the missing keys that an unknown one resembles.
  static std::string meant_by(const ordered_json& object, Keys missing, Keys known) {
    std::string hints;
    int64_t named = 0;
    for (const auto& item : object.items()) {
      if (has(known, item.key())) continue;
      const auto meant = closest_word(item.key(), missing);
      if (!meant || ++named > kMostNamed) continue;
      hints += fmt::format("; {} seems to stand for {}", in_quotes(item.key()), *meant);
    }
    return hints;
  }

  // Only a warning: the author may know what the network makes of them.
  void unknown_keys(const ordered_json& object, const std::string& path, Keys known) {
    std::vector<std::string> unknown;
    int64_t more = 0;
    for (const auto& item : object.items()) {
      const bool told_apart = path == "$" && item.key() == schema::kExpanderKey;
      if (has(known, item.key()) || told_apart) continue;
      if (std::ssize(unknown) == kMostNamed) {
        ++more;
        continue;
      }
      const auto meant = closest_word(item.key(), known);
      unknown.push_back(in_quotes(item.key()) +
                        (meant ? fmt::format(" (did you mean {}?)", *meant) : ""));
    }
    if (unknown.empty()) return;
    const bool several = unknown.size() > 1;
    if (more > 0) unknown.push_back(fmt::format("{} more", more));
    warn(path, fmt::format("unknown key{} {}, expected only {}", several ? "s" : "",
                           fmt::join(unknown, ", "), fmt::join(known, ", ")));
  }

  bool is_object(const ordered_json& value, const std::string& path) {
    if (!value.is_object()) wrong_type(path, "an object", value);
    return value.is_object();
  }

  // Only a warning: the official verifier does not look at the types of these.
  void expect_string(const ordered_json& owner, const std::string& path, const char* key) {
    const auto found = owner.find(key);
    if (found == owner.end() || found->is_string()) return;
    warn(fmt::format("{}.{}", path, key),
         fmt::format("expected a string, got {}", describe(*found)));
  }

  void wrong_type(const std::string& path, std::string_view expected, const ordered_json& got) {
    error(path, fmt::format("expected {}, got {}", expected, describe(got)));
  }

  void error(const std::string& path, const std::string& rule) {
    add({path, rule, CaptionFinding::Severity::error, false});
  }
  void fixable(const std::string& path, const std::string& rule) {
    add({path, rule, CaptionFinding::Severity::error, true});
  }
  void warn(const std::string& path, const std::string& rule) {
    add({path, rule, CaptionFinding::Severity::warning, false});
  }
  void add(CaptionFinding finding) { findings_.push_back(std::move(finding)); }

  std::vector<CaptionFinding>& findings_;
};

}  // namespace

void check_rules(const ordered_json& caption, std::vector<CaptionFinding>& findings) {
  Rules(findings).check_root(caption);
}

}  // namespace octet::ideogram4
