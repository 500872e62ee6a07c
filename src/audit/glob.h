// Patterns over whole texts: '*' is any text, '?' any character, [a-z0] one of these; case matters,
// and a '[' without ']' is itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::audit {

// Whether the whole text fits. Time grows with the product of both lengths at worst: pieces between
// two '*' are taken where they come first, and never looked for again.
bool matches_glob(std::string_view pattern, std::string_view text);

// Many patterns at once: one pass over the text whatever their number, by the automaton of Aho and
// Corasick over all of their pieces. Patterns whose pieces come in their order are tried then.
class GlobSet {
 public:
  explicit GlobSet(std::vector<std::string> patterns);
  // The number of the first pattern that fits.
  std::optional<size_t> first_match(std::string_view text) const;

 private:
  using State = uint16_t;
  // A piece that ends in a state: which one of which pattern.
  struct Ending {
    uint16_t pattern = 0, piece = 0;
    uint32_t length = 0;
  };
  struct Place {
    std::vector<Ending> endings;
    State shorter = 0;  // the longest end of its text that is a state with endings, else 0
  };

  State add_piece(std::string_view piece);
  void link_states();
  State& next(State state, uint8_t letter) { return next_[state * letters_ + letter]; }

  std::vector<std::string> patterns_;
  std::vector<uint16_t> pieces_;             // of each pattern
  std::array<uint8_t, 256> letter_of_ = {};  // 0: in no piece
  size_t letters_ = 1;
  std::vector<State> next_;  // [state][letter]
  std::vector<Place> places_;
};

}  // namespace octet::audit
