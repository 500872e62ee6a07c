// "Did you mean": the word that a misspelt one was probably meant to be.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace octet {

// The candidate that differs least from `word` in letters that were added, left out, changed or
// swapped, ignoring case and the kind of dash; nothing if a third of the letters or more differ. A
// candidate that begins with `word`, or with which `word` begins, is close as well: "object" and
// "obj".
std::optional<std::string_view> closest_word(std::string_view word,
                                             std::span<const std::string_view> candidates);

}  // namespace octet
