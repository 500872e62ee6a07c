// "Did you mean": the word that a misspelt one was probably meant to be.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace octet {

// The candidate that differs least from `word` in letters that were added, left out, changed or
// swapped, case and the kind of dash aside; nothing when a third of the letters or more differ. A
// word that one of them begins with, or that begins with one of them, is close as well: "object"
// and "obj".
std::optional<std::string_view> closest_word(std::string_view word,
                                             std::span<const std::string_view> candidates);

}  // namespace octet
