// From a text to a caption: what it asks for, and where it goes on the picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demo/words.h"

namespace octet::demo {

// More than these make small things and unsteady letters.
inline constexpr size_t kMostElements = 4;

enum class Size { usual, small, large };
enum class Row { any, top, middle, bottom };
enum class Column { any, left, right };
// Where a group lies, seen from the one before it.
enum class Order { any, below, above, right, left };

// Things of one kind, or the words of one phrase.
struct Group {
  std::optional<size_t> thing;  // none: words
  size_t count = 1;             // of things
  std::vector<std::string> words;
  std::vector<Rgb> colours;
  size_t font = 0;
  Size size = Size::usual;
  Row row = Row::any;
  Column column = Column::any;
  Order order = Order::any;

  size_t elements() const { return thing ? count : words.size(); }
};

struct Scene {
  std::vector<Rgb> background;  // one, or the two ends of a gradient; none: any
  std::vector<Group> groups;    // kMostElements elements at most
};

// Plain text as a caption of what the demo's model can paint; the same text gives the same caption.
// It must be UTF-8 without NUL bytes. Throws InvalidRequest where nothing in it is known.
std::string caption_from_text(std::string_view text, const Words& words);

// What is known of the text; the rest is left out.
Scene read_scene(std::string_view text, const Words& words);

// In pixels of a picture of kSide x kSide.
struct Box {
  int x = 0, y = 0, width = 0, height = 0;
};
inline constexpr int kSide = 256;

// For each element of each group, in their order: inside of the picture and apart.
std::vector<std::vector<Box>> arrange(const Scene& scene, const Words& words);

// Gives colours to all that nobody gave any: what stands out from the background and, where things
// have no colours of their own, from each other.
void choose_colours(Scene& scene, const Words& words);

}  // namespace octet::demo
