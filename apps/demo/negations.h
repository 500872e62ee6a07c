// "no stars, just a moon": what a text does not want.
#pragma once

#include <vector>

#include "demo/phrases.h"

namespace octet::demo {

struct NegationsRead {
  size_t end = 0;  // the first token after them; the first of the text: there are none
  std::vector<Negation> negations;
  bool only_colours = false;    // "a heart, not red": what follows is still about the heart
  bool is_of_noun = false;      // and so are the colours: "no red" is about all of the picture
  bool is_of_next = false;      // "a non-red heart"
  bool is_exchange = false;     // "instead of": what is wanted was said before
  bool is_alternative = false;  // "neither red nor blue hearts": these are wanted
};

// Of the tokens from `at` on, `behind_noun`: directly after something that is painted, so that what
// is unknown may be a part of it ("a car without wheels"). What is negated but cannot be told ("not
// on the left") is skipped without a negation, and nobody claims it.
NegationsRead negations_at(const Phrases& phrases, size_t at, bool behind_noun);

}  // namespace octet::demo
