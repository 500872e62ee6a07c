// What the demo's model can paint and the words for it: words.json of its folder, which
// tools/demo_model/write_words.py writes from the tables that the model was trained with.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/error.h"

namespace octet::demo {

// How the demo refuses: one sentence, as an Error of the library.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> sentence, Args&&... args) {
  throw Error(fmt::format(sentence, std::forward<Args>(args)...));
}

std::string plural_of(const std::string& noun);

struct Rgb {
  int red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

// Of "#RRGGBB", in either case.
std::optional<Rgb> parse_rgb(std::string_view text);
std::string hexadecimal(const Rgb& colour);

// Between 0 and 1; red, green and blue weighted roughly as the eye does.
double distance(const Rgb& a, const Rgb& b);

struct Thing {
  std::string noun;  // as in the captions of the training
  // That it has when nobody names any; none: any one colour suits it.
  std::vector<Rgb> usual;
  double shape = 1;  // width by height
};

// What a phrase means.
struct Meaning {
  enum class Kind { thing, colour, font, background };
  Kind kind = Kind::thing;
  size_t index = 0;     // of a thing or a font
  bool plural = false;  // of a thing
  // A colour's own; of backgrounds those that mean one, as a sky does.
  std::optional<Rgb> colour = {};
};

class Words {
 public:
  std::vector<Thing> things;
  std::vector<std::string> fonts;    // phrases of the training; the first is the usual one
  std::map<std::string, Rgb> names;  // of colours, as in the training
  std::string characters;            // that words on a picture may have
  size_t most_letters = 1;           // of such a word

  // Lower-case words with single spaces.
  const Meaning* find(const std::string& phrase) const;
  size_t longest_phrase() const { return longest_; }  // in words

  // A text as words that can be painted: without punctuation around them, and not longer than the
  // model can.
  std::vector<std::string> pieces_of(std::string_view text) const;
  // What these pieces lack of it: marks that the model cannot paint, words in one piece.
  std::vector<std::string> losses_of(std::string_view text) const;
  // Throws InvalidRequest with the first letter that it cannot paint, or a word that is far too
  // long.
  void check_letters(std::string_view text) const;

  // The name of the colour that is nearest.
  const std::string& name_of(const Rgb& colour) const;
  // Sky blue is a kind of blue.
  bool is_kind_of(const Rgb& colour, const Rgb& kind) const;

  void add(std::string phrase, const Meaning& meaning);

 private:
  std::string painted_of(std::string_view word) const;

  std::map<std::string, Meaning> phrases_;
  size_t longest_ = 0;
};

Words read_words(const std::string& path);

}  // namespace octet::demo
