// Reads what a text asks for. Internal to read_scene(); in parts over read_*.cpp.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demo/negations.h"
#include "demo/phrases.h"
#include "demo/scene.h"

namespace octet::demo {

// Reads the tokens once, from the first to the last.
class SceneReader {
 public:
  SceneReader(const std::vector<Token>& tokens, const Words& words)
      : words_(words), phrases_(tokens, words) {}

  Scene read();

 private:
  struct Place {
    Row row = Row::any;
    Column column = Column::any;
    Span said_row = {}, said_column = {};
  };

  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  bool is(size_t at, std::string_view word) const { return phrases_.is(at, word); }
  bool is(size_t at, Role role) const { return phrases_.is(at, role); }
  bool is_any(size_t at, std::initializer_list<std::string_view> words) const {
    return phrases_.is_any(at, words);
  }

  void step();

  bool read_negations();

  // "blue instead of red hearts": the noun is of what is wanted too.
  bool shares_noun(const NegationsRead& found) const;

  // "a star is not wanted"
  bool read_withdrawal();

  // Behind "is not wanted", "must be missing"; 0: there is no such thing.
  size_t unwanted_end(size_t at) const;

  // --- what is no thing of its own

  // "heart-shaped", "red-roofed", before a noun that can be painted
  bool pass_attribute();

  // "an icon in the shape of a heart" is a heart, a cookie in its shape is not.
  bool is_any_thing(size_t at) const;

  // "a cloud like a heart", "a heart the colour of the sun"
  bool pass_comparison();

  // "a mushroom with white dots"
  bool pass_pattern(const Phrase& phrase);

  // --- things that share a noun

  // "two red and three blue circles", "a red and a blue heart"
  bool read_shared_noun();

  // "three circles, two red and one blue"
  bool read_shares();

  // "GOOD and BAD in green and red"
  bool share_colours(const Description& found);

  // "a red heart and a blue one"
  bool read_one_more();

  // --- texts

  // Quotations and capitals; those that follow each other are one group.
  void read_text();

  // "HAVE A NICE DAY"
  bool is_letter_in_text(size_t at) const;

  void add_pieces(Group& group, size_t token) const;

  void read_named_text();

  bool may_be_text(size_t at) const;

  bool is_known(size_t at) const;

  // "saying see you in June" goes on, "saying hello in red" does not.
  bool ends_text(size_t at) const;

  static void append(std::vector<Span>& spans, const std::vector<Span>& more);

  void add_words(Group group);

  // --- things, colours, backgrounds

  bool read_phrase();

  void add_thing(const Meaning& meaning, Span said);

  // "the colour of" before "the heart", which is no part of it as a roof is of a house.
  Span colour_of(Span noun) const;

  // Not "a 5-pointed star": that is one.
  bool is_counted(const Meaning& meaning, Span said) const;

  // "a heart and a star; the heart is red"
  bool is_named_again(const Meaning& meaning, Span said);

  // "a smiley face" is one; "heart heart" are two.
  bool is_named_twice(const Meaning& meaning, Span said);

  void set_order(Group& group, Order order);

  void add(Group group);

  // What a thing cannot have stays unclaimed.
  static void take_description(Group& group, const Description& found);

  static void set_case(std::string& word, bool capitals);

  void set_background(const std::vector<Named<Rgb>>& colours, size_t most, std::vector<Span> said);

  // "a blue wall", "background: blue", "a night sky"
  void read_ground(const Meaning& meaning, Span noun);

  // Not where more of a noun follows, which the colours are of.
  bool ends_description(size_t at) const;

  // "on blue", "gradient from blue to white"
  bool read_background();

  static Rgb paler(const Rgb& colour);

  // --- what is said of things behind their names

  // "hearts red", "heart (blue)", "heart, blue", "stars: 3"
  bool read_behind_noun();

  // The words before what is said.
  struct Statement {
    size_t end = 0;  // 0: there is none
    bool is_of_several = false, is_of_both = false, is_of_everything = false;
  };
  Statement statement_at(size_t at) const;

  // Of the groups that "are blue" is about: "the heart and the star".
  size_t list_begin() const;

  // "a blue colour"
  bool ends_in_colour(size_t at) const;

  // "HELLO in red letters", "the heart is red", "make it green", "both green".
  bool read_statement();

  // "everything in blue", also where the things come later
  void share_statements();

  // "the heart's colour"
  bool read_possessive();

  // "don't make the heart red": it is wanted.
  bool read_denied_colour();

  // "red is forbidden"
  bool read_forbidden_colour();

  // "not two hearts but three"
  bool read_other_count();

  // --- places

  bool is_place(size_t at) const;

  // "two hearts next to each other"
  bool read_side_by_side();

  bool read_place();

  Place place_of(size_t at) const;

  bool has_noun_after(size_t at) const;

  // It is between two that are painted, or nobody claims it.
  bool read_order(Order order, size_t tokens);

  // An order that nothing followed was about the last group: "a heart, the word LOVE above", "a
  // heart with a star below it". In "a heart, below it, the word LOVE" the word is still to come.
  void end_clause();

  void read_small_word();

  // A noun that is unknown takes with it what was said about it, and what follows is about it
  // too.
  void pass_unknown();

  void lose_thread();

  const Words& words_;
  Phrases phrases_;
  size_t at_ = 0;
  Scene scene_;
  size_t current_ = kNone;   // the group that is talked about; none: nothing, or something unknown
  size_t noun_end_ = kNone;  // behind its noun, and the unknown words that cling to it
  size_t unknown_ = kNone;   // the last token that means nothing
  // Of what comes next.
  Description described_;
  Place place_;
  std::vector<Span> heralds_;  // "the word"
  Order order_ = Order::any;
  Span said_order_;
  struct SharedColour {
    Named<Rgb> colour;
    Span verbs;
    size_t first = 0, end = kNone;  // the groups
  };
  std::vector<SharedColour> shared_;
  std::optional<size_t> named_thing_;  // that "one" stands for, also of what is not wanted
  bool order_is_sure_ = false;         // "below it"
  bool order_is_behind_ = false;       // what it may be about
  bool is_part_meant_ = false;         // "the roof of the house is red"
  bool is_new_ = true;                 // nothing came since the clause began
};

}  // namespace octet::demo
