// Cuts a text into units, inside of which tokens are merged. A unit is one match of Qwen's regular
// expression:
//
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)     a contraction's ending
//   [^\r\n\p{L}\p{N}]?\p{L}+         letters, with one character before them that is neither a
//                                    letter nor a digit nor ends a line
//   \p{N}                            one digit
//    ?[^\s\p{L}\p{N}]+[\r\n]*        punctuation, with a space before and line ends after it
//   \s*[\r\n]+                       white space up to its last line end
//   \s+(?!\S)                        white space but the last one, which goes to the next word
//   \s+                              white space
//
// The first alternative that matches wins, and the seven cover every character. They are scanned by
// hand: each is decided by looking ahead over one run, so a text takes time linear in its length.
#pragma once

#include <cstddef>
#include <string_view>

namespace octet::tokenizer {

inline constexpr std::string_view kSplitRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Where the unit that starts at `begin` ends; begin < text.size().
size_t end_of_unit(std::u32string_view text, size_t begin);

}  // namespace octet::tokenizer
