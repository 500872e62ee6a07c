// Reads what a text asks for. Internal to read_scene(); in parts over read_*.cpp.
#pragma once

#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

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

  // "a star is not wanted"
  bool read_withdrawal();

  // Behind "is not wanted", "must be missing"; 0: there is no such thing.
  size_t unwanted_end(size_t at) const;

  // --- what is no thing of its own

  // "heart-shaped", "red-roofed", before a noun that can be painted
  bool pass_attribute();

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

  // "HELLO in red letters", "the heart is red": about what stands before.
  bool read_after_in();

  // "hearts red", "heart (blue)", "stars: 3"
  bool read_behind_noun();

  // --- places

  bool is_place(size_t at) const;

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
  bool order_is_sure_ = false;    // "below it"
  bool order_is_behind_ = false;  // what it may be about
  bool is_part_meant_ = false;    // "the roof of the house is red"
  bool is_new_ = true;            // nothing came since the clause began
};

}  // namespace octet::demo
