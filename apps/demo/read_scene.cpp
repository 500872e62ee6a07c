#include <algorithm>
#include <utility>

#include "demo/grammar.h"
#include "demo/scene.h"

namespace octet::demo {
namespace {

// A phrase of the table at some token, and how many tokens it takes.
struct Phrase {
  const Meaning* meaning = nullptr;
  size_t tokens = 0;

  bool is(Meaning::Kind kind) const { return meaning != nullptr && meaning->kind == kind; }
};

// What stands before the noun that it describes, or after "in".
struct Description {
  std::vector<Rgb> colours;
  std::optional<size_t> count, font;
  Size size = Size::usual;

  bool empty() const { return colours.empty() && !font && size == Size::usual; }
};

struct Place {
  Row row = Row::any;
  Column column = Column::any;
};

// Reads the tokens once, from the first to the last.
class SceneReader {
 public:
  SceneReader(std::string_view text, const Words& words) : words_(words), tokens_(tokens_of(text)) {
    // Capitals say nothing in a text that has no other letters, unless they are all there is.
    bool any_known = false, any_quiet = false;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      any_known |= phrase_at(i).meaning != nullptr;
      any_quiet |= tokens_[i].kind == Token::Kind::word && tokens_[i].text == tokens_[i].lower &&
                   !number_of(tokens_[i].lower);
    }
    capitals_are_text_ = any_quiet || !any_known;
  }

  Scene read() {
    while (at_ < tokens_.size()) step();
    end_clause();
    return std::move(scene_);
  }

 private:
  bool is_word(size_t at) const {
    return at < tokens_.size() && tokens_[at].kind == Token::Kind::word;
  }
  bool is(size_t at, std::string_view word) const {
    return at < tokens_.size() && tokens_[at].is(word);
  }
  bool is_any(size_t at, std::initializer_list<std::string_view> words) const {
    return std::ranges::any_of(words, [&](std::string_view word) { return is(at, word); });
  }
  bool is(size_t at, Role role) const { return is_word(at) && demo::is(tokens_[at].lower, role); }
  bool is_text(size_t at) const {
    return at < tokens_.size() && (tokens_[at].kind == Token::Kind::quote ||
                                   (capitals_are_text_ && is_shouted(tokens_[at])));
  }

  // The longest that there is.
  Phrase phrase_at(size_t at) const {
    Phrase longest;
    std::string phrase;
    for (size_t count = 1; count <= words_.longest_phrase() && is_word(at + count - 1); ++count) {
      phrase += (count == 1 ? "" : " ") + tokens_[at + count - 1].lower;
      if (const Meaning* meaning = words_.find(phrase)) longest = {meaning, count};
    }
    return longest;
  }

  std::optional<Rgb> colour_at(size_t at, size_t& taken) const {
    if (at < tokens_.size() && tokens_[at].kind == Token::Kind::colour) {
      taken = 1;
      return parse_rgb(tokens_[at].text);
    }
    if (is_text(at)) return std::nullopt;
    const Phrase phrase = phrase_at(at);
    taken = phrase.tokens;
    return phrase.is(Meaning::Kind::colour) ? phrase.meaning->colour : std::nullopt;
  }

  // Of the tokens from `at` on; `at` becomes the first that describes nothing.
  Description description_at(size_t& at) const {
    Description found;
    for (size_t taken = 0; at < tokens_.size() && !is_text(at); at += taken) {
      if (const auto colour = colour_at(at, taken)) {
        found.colours.push_back(*colour);
      } else if (const Phrase phrase = phrase_at(at); phrase.is(Meaning::Kind::font)) {
        found.font = phrase.meaning->index;
        taken = phrase.tokens;
      } else if (const auto size = size_of(tokens_[at].lower)) {
        found.size = *size;
        taken = 1;
      } else if (is(at, Role::article) || is(at, Role::plain_adjective)) {
        taken = 1;
      } else if (!found.colours.empty() && joins_colours(at)) {
        taken = is(at + 1, "and") ? 2 : 1;
      } else {
        break;
      }
    }
    return found;
  }

  // "red, green and blue", "from red to blue"
  bool joins_colours(size_t at) const {
    const bool is_comma = tokens_[at].kind == Token::Kind::mark && tokens_[at].text == ",";
    if (!is_comma && !is(at, "and") && !is(at, "to")) return false;
    size_t taken = 0;
    return colour_at(at + (is_comma && is(at + 1, "and") ? 2 : 1), taken).has_value();
  }

  void step() {
    const Token& token = tokens_[at_];
    if (token.kind == Token::Kind::mark) {
      end_clause();
      ++at_;
    } else if (is_text(at_)) {
      read_text();
    } else if (names_text(at_)) {
      read_named_text();
    } else if (!read_phrase() && !read_background() && !read_after_in() && !read_place()) {
      read_small_word();
    }
  }

  // --- texts

  // Quotations and capitals; those that follow each other are one group.
  void read_text() {
    std::vector<std::string> texts;
    for (; is_text(at_); ++at_) append(texts, words_.pieces_of(tokens_[at_].text));
    add_words(std::move(texts));
  }

  bool names_text(size_t at) const {
    return is(at, Role::names_a_word) || is(at, Role::names_words) || is(at, Role::letters);
  }

  void read_named_text() {
    const bool takes_all = is(at_, Role::names_words);
    const bool takes_known = takes_all || is(at_, Role::names_a_word);
    ++at_;
    while (is_any(at_, {"is", "the"})) ++at_;
    const auto may_be_text = [&](size_t at) {
      return is_word(at) && !is_text(at) && !is(at, Role::preposition) && !names_text(at);
    };
    std::vector<std::string> texts;
    while (may_be_text(at_) && (texts.empty() || takes_all) &&
           (takes_known || (phrase_at(at_).meaning == nullptr && !size_of(tokens_[at_].lower) &&
                            !is(at_, Role::article)))) {
      append(texts, words_.pieces_of(tokens_[at_++].text));
    }
    add_words(std::move(texts));
  }

  static void append(std::vector<std::string>& texts, const std::vector<std::string>& more) {
    texts.insert(texts.end(), more.begin(), more.end());
  }

  void add_words(std::vector<std::string> texts) {
    if (texts.empty()) return;
    if (texts.size() > kMostElements) texts.resize(kMostElements);
    Group group;
    group.words = std::move(texts);
    add(std::move(group));
  }

  // --- things, colours, backgrounds

  bool read_phrase() {
    size_t taken = 0;
    if (const auto colour = colour_at(at_, taken)) {
      described_.colours.push_back(*colour);
      at_ += taken;
      return true;
    }
    const Phrase phrase = phrase_at(at_);
    if (phrase.meaning == nullptr) return false;
    at_ += phrase.tokens;
    switch (phrase.meaning->kind) {
      case Meaning::Kind::thing: add_thing(*phrase.meaning); break;
      case Meaning::Kind::font: described_.font = phrase.meaning->index; break;
      case Meaning::Kind::background: read_ground(*phrase.meaning); break;
      case Meaning::Kind::colour: break;  // above
    }
    return true;
  }

  void add_thing(const Meaning& meaning) {
    Group group;
    group.thing = meaning.index;
    if (meaning.plural) {
      const size_t colours = described_.colours.size();
      const bool one_each = colours > 1 && words_.things[meaning.index].usual.size() < 2;
      group.count = described_.count.value_or(one_each ? colours : 2);
    }
    add(std::move(group));
  }

  void add(Group group) {
    group.colours = described_.colours;
    group.font = described_.font.value_or(0);
    group.size = described_.size;
    group.row = place_.row;
    group.column = place_.column;
    group.order = order_;
    scene_.groups.push_back(std::move(group));
    described_ = {};
    place_ = {};
    order_ = Order::any;
    is_new_ = false;
  }

  // "a blue wall", "background: blue", "a night sky"
  void read_ground(const Meaning& meaning) {
    std::vector<Rgb> colours = std::move(described_.colours);
    described_ = {};
    order_ = Order::any;
    if (colours.empty()) {
      size_t at = at_;
      while (is_any(at, {"is", "in", "of", "should", "be"})) ++at;
      colours = description_at(at).colours;
      const bool is_its_own = !colours.empty() && !names_element(at);
      if (is_its_own) at_ = at;
      if (!is_its_own) colours.clear();
    }
    if (colours.empty() && meaning.colour && scene_.background.empty()) {
      colours = {*meaning.colour};
    }
    if (!colours.empty()) scene_.background = {colours.front()};
  }

  bool names_element(size_t at) const {
    return is_text(at) || phrase_at(at).is(Meaning::Kind::thing) || is(at, Role::names_a_word);
  }

  // "on blue", "gradient from blue to white"
  bool read_background() {
    const bool is_gradient = is(at_, "gradient");
    if (!is_any(at_, {"gradient", "on", "over", "against"})) return false;
    size_t at = at_ + 1;
    while (is_gradient && is_any(at, {"from", "of", "in", "background"})) ++at;
    std::vector<Rgb> colours = description_at(at).colours;
    if (is_gradient && !described_.colours.empty()) {
      colours = std::move(described_.colours);
      at = at_ + 1;
    }
    if (colours.empty() || names_element(at)) {
      if (is_gradient) ++at_;
      return is_gradient;
    }
    described_ = {};
    if (!is_gradient) colours.resize(1);
    if (is_gradient && colours.size() == 1) colours.push_back(paler(colours.front()));
    if (colours.size() > 2) colours.resize(2);
    scene_.background = std::move(colours);
    at_ = at;
    const Phrase ground = phrase_at(at_);
    if (ground.is(Meaning::Kind::background)) at_ += ground.tokens;
    return true;
  }

  static Rgb paler(const Rgb& colour) {
    const auto half = [](int part) { return (part + 255) / 2; };
    return {half(colour.red), half(colour.green), half(colour.blue)};
  }

  // "HELLO in red letters", "the heart is red": about what stands before.
  bool read_after_in() {
    const bool joins = is_any(at_, {"in", "is", "are", "painted", "colored", "coloured"});
    if (!joins || scene_.groups.empty()) return false;
    size_t at = at_ + 1;
    const Description found = description_at(at);
    if (found.empty() || names_element(at) || phrase_at(at).is(Meaning::Kind::background)) {
      return false;
    }
    Group& group = scene_.groups.back();
    if (!found.colours.empty()) group.colours = found.colours;
    if (found.font) group.font = *found.font;
    if (found.size != Size::usual) group.size = found.size;
    while (is(at, Role::letters) || is(at, Role::typeface)) ++at;
    at_ = at;
    return true;
  }

  // --- places

  bool read_place() {
    if (is(at_, "on") && is(at_ + 1, "top") && is(at_ + 2, "of"))
      return read_order(Order::below, 3);
    if (is(at_, "next") && is(at_ + 1, "to")) return read_order(Order::right, 2);
    if (is(at_, "left") && is(at_ + 1, "of")) return read_order(Order::right, 2);
    if (is(at_, "right") && is(at_ + 1, "of")) return read_order(Order::left, 2);
    if (const auto order = order_of(tokens_[at_].lower)) return read_order(*order, 1);
    Place place;
    if (is_any(at_, {"top", "upper"})) place.row = Row::top;
    if (is_any(at_, {"bottom", "lower"})) place.row = Row::bottom;
    if (is_any(at_, {"middle", "center", "centre"})) place.row = Row::middle;
    if (is(at_, "left")) place.column = Column::left;
    if (is(at_, "right")) place.column = Column::right;
    if (place.row == Row::any && place.column == Column::any) return false;
    ++at_;
    // Behind what it is about, or before.
    const bool is_about_last = !is_new_ && !scene_.groups.empty();
    Row& row = is_about_last ? scene_.groups.back().row : place_.row;
    Column& column = is_about_last ? scene_.groups.back().column : place_.column;
    if (row == Row::any) row = place.row;
    if (column == Column::any) column = place.column;
    return true;
  }

  bool read_order(Order order, size_t tokens) {
    at_ += tokens;
    if (scene_.groups.empty()) return true;
    order_ = order;
    order_is_sure_ = is(at_, Role::pronoun);
    if (order_is_sure_) order_ = opposite(order);
    return true;
  }

  // An order that nothing followed was about the last group: "a heart, the word LOVE above".
  void end_clause() {
    is_new_ = true;
    if (order_ == Order::any || order_is_sure_) return;
    if (scene_.groups.size() > 1) scene_.groups.back().order = opposite(order_);
    order_ = Order::any;
  }

  void read_small_word() {
    const std::string_view word = tokens_[at_].lower;
    if (const auto size = size_of(word)) described_.size = *size;
    if (const auto number = number_of(word)) described_.count = number;
    // What was described before and never came is nothing that is known.
    if (is(at_, Role::article)) described_ = {};
    if (is(at_, Role::connector)) is_new_ = true;
    ++at_;
  }

  const Words& words_;
  std::vector<Token> tokens_;
  bool capitals_are_text_ = true;
  size_t at_ = 0;
  Scene scene_;
  // Of what comes next.
  Description described_;
  Place place_;
  Order order_ = Order::any;
  bool order_is_sure_ = false;  // "below it"
  bool is_new_ = true;          // nothing came since the clause began
};

// Takes from the largest group, so that "ten stars and a moon" keep the moon.
void keep_most_elements(Scene& scene) {
  const auto fewer = [](const Group& a, const Group& b) { return a.elements() < b.elements(); };
  // So many groups fit with one element each.
  if (scene.groups.size() > kMostElements) scene.groups.resize(kMostElements);
  for (;;) {
    size_t total = 0;
    for (const Group& group : scene.groups) total += group.elements();
    if (total <= kMostElements) return;
    Group& largest = *std::max_element(scene.groups.begin(), scene.groups.end(), fewer);
    if (largest.thing) --largest.count;
    if (!largest.thing) largest.words.pop_back();
  }
}

}  // namespace

Scene read_scene(std::string_view text, const Words& words) {
  Scene scene = SceneReader(text, words).read();
  keep_most_elements(scene);
  return scene;
}

}  // namespace octet::demo
