#include "audit/glob.h"

#include <limits>
#include <utility>

#include "base/error.h"

namespace octet::audit {
namespace {

// What stands for one character at the start of a pattern: itself, '?' or a set.
std::string_view glob_element(std::string_view pattern) {
  const size_t end = pattern.starts_with('[') ? pattern.find(']', 1) : std::string_view::npos;
  return pattern.substr(0, end == std::string_view::npos ? 1 : end + 1);
}

bool glob_element_fits(std::string_view element, char c) {
  if (element.size() == 1) return element[0] == '?' || element[0] == c;
  const std::string_view set = element.substr(1, element.size() - 2);
  for (size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    if (is_range ? set[i] <= c && c <= set[i + 2] : set[i] == c) return true;
    if (is_range) i += 2;
  }
  return false;
}

// The texts between its signs.
std::vector<std::string> pieces_of(std::string_view pattern) {
  std::vector<std::string> pieces;
  bool is_open = false;
  while (!pattern.empty()) {
    const std::string_view element = glob_element(pattern);
    pattern.remove_prefix(element.size());
    const bool is_plain = element.size() == 1 && element[0] != '*' && element[0] != '?';
    if (is_plain && !is_open) pieces.emplace_back();
    if (is_plain) pieces.back() += element;
    is_open = is_plain;
  }
  return pieces;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  constexpr size_t kNowhere = std::string_view::npos;
  std::string_view behind_star;  // what stands behind the last '*' so far, and
  size_t tried = kNowhere;       // where in the text it was tried; nowhere: there was none
  for (size_t at = 0; at < text.size();) {
    const std::string_view element = glob_element(pattern);
    if (element == "*") {
      pattern.remove_prefix(1);
      if (pattern.empty()) return true;
      behind_star = pattern;
      tried = at;
    } else if (!element.empty() && glob_element_fits(element, text[at])) {
      pattern.remove_prefix(element.size());
      ++at;
    } else {
      if (tried == kNowhere) return false;
      const bool is_plain = behind_star[0] != '?' && behind_star[0] != '[' && behind_star[0] != '*';
      tried = is_plain ? text.find(behind_star[0], tried + 1) : tried + 1;
      if (tried == kNowhere) return false;
      pattern = behind_star;
      at = tried;
    }
  }
  return pattern.find_first_not_of('*') == kNowhere;
}

GlobSet::GlobSet(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {
  std::vector<std::vector<std::string>> all;
  for (const std::string& pattern : patterns_) {
    all.push_back(pieces_of(pattern));
    pieces_.push_back(static_cast<uint16_t>(all.back().size()));
    for (const std::string& piece : all.back()) {
      for (const char byte : piece) {
        uint8_t& letter = letter_of_[static_cast<uint8_t>(byte)];
        if (letter == 0) letter = static_cast<uint8_t>(letters_++);
      }
    }
  }
  places_.emplace_back();
  next_.resize(letters_);
  for (size_t pattern = 0; pattern < all.size(); ++pattern) {
    for (size_t piece = 0; piece < all[pattern].size(); ++piece) {
      const std::string& text = all[pattern][piece];
      places_[add_piece(text)].endings.push_back({static_cast<uint16_t>(pattern),
                                                  static_cast<uint16_t>(piece),
                                                  static_cast<uint32_t>(text.size())});
    }
  }
  link_states();
}

GlobSet::State GlobSet::add_piece(std::string_view piece) {
  State state = 0;
  for (const char byte : piece) {
    const uint8_t letter = letter_of_[static_cast<uint8_t>(byte)];
    if (next(state, letter) == 0) {
      check(places_.size() < std::numeric_limits<State>::max(), "the patterns are too long");
      next(state, letter) = static_cast<State>(places_.size());
      places_.emplace_back();
      next_.resize(next_.size() + letters_);
    }
    state = next(state, letter);
  }
  return state;
}

// Where a state has no next one for a letter, it goes on from the longest end of its text that is a
// state: breadth first, so that those of shorter texts are complete.
void GlobSet::link_states() {
  std::vector<State> shorter(places_.size()), order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const State state = order[i];
    for (size_t at = 1; at < letters_; ++at) {
      const auto letter = static_cast<uint8_t>(at);
      State& into = next(state, letter);
      const State otherwise = state == 0 ? State{0} : next(shorter[state], letter);
      if (into == 0) {
        into = otherwise;
        continue;
      }
      shorter[into] = otherwise;
      const Place& end = places_[otherwise];
      places_[into].shorter = end.endings.empty() ? end.shorter : otherwise;
      order.push_back(into);
    }
  }
}

std::optional<size_t> GlobSet::first_match(std::string_view text) const {
  struct Progress {
    size_t from = 0;  // where the next piece may begin
    size_t pieces = 0;
  };
  std::vector<Progress> found;  // of each pattern, empty: no piece yet
  State state = 0;
  for (size_t end = 1; end <= text.size(); ++end) {
    state = next_[state * letters_ + letter_of_[static_cast<uint8_t>(text[end - 1])]];
    const Place& here = places_[state];
    for (State at = here.endings.empty() ? here.shorter : state; at != 0;
         at = places_[at].shorter) {
      if (found.empty()) found.resize(patterns_.size());
      for (const Ending& ending : places_[at].endings) {
        Progress& progress = found[ending.pattern];
        if (progress.pieces != ending.piece || progress.from + ending.length > end) continue;
        progress = {end, progress.pieces + 1};
      }
    }
  }
  for (size_t i = 0; i < patterns_.size(); ++i) {
    const size_t pieces = found.empty() ? 0 : found[i].pieces;
    if (pieces == pieces_[i] && matches_glob(patterns_[i], text)) return i;
  }
  return std::nullopt;
}

}  // namespace octet::audit
