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

// Tokens of the text, one after the other; none: nobody said it.
struct Span {
  size_t first = 0, count = 0;
};

// Where the text says what a group has: the group claims these tokens as far as it is painted so.
struct Said {
  std::vector<Span> noun;     // also what is true of whatever is painted: "a plain heart"
  std::vector<Span> colours;  // of Group::colours, as far as the text names them
  std::vector<size_t> words;  // the token that each of Group::words is from
  Span count, font, size, row, column, order;
  Span side_by_side;         // of things of one group: "two hearts next to each other"
  bool shares_noun = false;  // between it and its noun stand others: "two red and three blue stars"
};

// Things of one kind, or the words of one phrase.
struct Group {
  std::optional<size_t> thing;  // none: words
  size_t count = 1;             // of things
  size_t wanted = 1;            // of them in the text; fewer may fit
  std::vector<std::string> words;
  std::vector<Rgb> colours;
  size_t font = 0;
  Size size = Size::usual;
  Row row = Row::any;
  Column column = Column::any;
  Order order = Order::any;
  Said said = {};

  size_t elements() const { return thing ? count : words.size(); }
};

// What must not be painted: "no red stars", "not blue", "without text".
struct Negation {
  Span said;
  std::optional<size_t> thing = {};
  std::vector<Rgb> colours = {};        // of the thing; without one, of anything
  std::vector<std::string> words = {};  // these
  std::optional<size_t> count = {};     // so many of the thing: "not two"
  std::optional<size_t> group = {};     // of it alone: "a heart, not red"
  bool letters = false;                 // any words at all
  bool always_there = false;            // or may be: "no background", "not smiling"
};

struct Scene {
  std::vector<Rgb> background;  // one, or the two ends of a gradient; none: any
  std::vector<Span> said_background;
  std::vector<Group> groups;   // kMostElements elements at most
  std::vector<Group> dropped;  // that did not fit
  std::vector<Negation> negations;
};

// A caption of what the demo's model can paint, and what of the text is not on it: its words, or
// for one that is there in part what is missing ("five stars: four fit").
// `summary` says for people what is on it, which for the model is said one by one. `warnings` are
// sentences about what the text asks for and nobody will see.
struct WrittenCaption {
  std::string caption;
  std::string summary;
  std::vector<std::string> left_out;
  std::vector<std::string> warnings;
};

// The same text gives the same caption. It must be UTF-8 without NUL bytes. Throws InvalidRequest
// where nothing in it is known, and for words to paint with letters that the model does not have.
WrittenCaption caption_from_text(std::string_view text, const Words& words);

struct Token;

// What is known of the text. Tokens that no part of the scene claims are left out.
Scene read_scene(const std::vector<Token>& tokens, const Words& words);

// In pixels of a picture of kSide x kSide.
struct Box {
  int x = 0, y = 0, width = 0, height = 0;
};
inline constexpr int kSide = 256;

// For each element of each group, in their order: inside of the picture and apart.
using Boxes = std::vector<std::vector<Box>>;
Boxes arrange(const Scene& scene, const Words& words);

// Gives colours to all that nobody gave any: what stands out from the background and, where things
// have no colours of their own, from each other. None of the colours that the text forbids.
void choose_colours(Scene& scene, const Words& words);

// Every token starts unclaimed, only what is on the finished picture claims any, and whatever is
// left is named, function words apart: so nothing can be missing without a word.
std::vector<std::string> find_left_out(const std::vector<Token>& tokens, const Scene& scene,
                                       const Boxes& boxes, const Words& words);

}  // namespace octet::demo
