#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>

#include "demo/grammar.h"
#include "demo/parts.h"
#include "demo/scene.h"

namespace octet::demo {
namespace {

bool is_above(const Box& a, const Box& b) { return a.y + a.height <= b.y; }
bool is_left(const Box& a, const Box& b) { return a.x + a.width <= b.x; }

bool lies(const Box& box, Order order, const Box& other) {
  switch (order) {
    case Order::above: return is_above(box, other);
    case Order::below: return is_above(other, box);
    case Order::left: return is_left(box, other);
    case Order::right: return is_left(other, box);
    case Order::any: break;
  }
  return true;
}

bool lies_in(const Box& box, Row row) {
  const int middle = 2 * box.y + box.height;  // of 2 * kSide
  if (row == Row::top) return middle < kSide;
  if (row == Row::bottom) return middle > kSide;
  return 3 * middle > 2 * kSide && 3 * middle < 4 * kSide;
}

bool lies_in(const Box& box, Column column) {
  const int middle = 2 * box.x + box.width;
  return column == Column::left ? middle < kSide : middle > kSide;
}

std::string_view number_word(size_t number) {
  static constexpr std::string_view kWords[] = {"none", "one", "two", "three", "four"};
  return kWords[number];
}

// Compares a finished scene with the text that it is from.
class Account {
 public:
  Account(const std::vector<Token>& tokens, const Scene& scene, const Boxes& boxes,
          const Words& words)
      : tokens_(tokens), scene_(scene), boxes_(boxes), words_(words), claimed_(tokens.size()) {}

  std::vector<std::string> left_out() {
    for (const Span& span : scene_.said_background) claim(span);
    for (size_t i = 0; i < scene_.groups.size(); ++i) claim_group(i);
    for (const Negation& negation : scene_.negations) {
      if (is_honoured(negation)) claim(negation.said);
    }
    // Any word may be wanted on a picture, also what is none of content elsewhere.
    for (const Group& group : scene_.dropped) name_words(group, 0);
    for (const Group& group : scene_.groups) name_words(group, group.words.size());
    for (size_t i = 0; i < tokens_.size(); ++i) name_unclaimed(i);
    for (const Group& group : scene_.groups) name_missing(group);
    for (size_t i = 1; i < scene_.groups.size(); ++i) name_compound(i);
    return std::move(left_out_);
  }

 private:
  void claim(const Span& span) {
    std::fill_n(claimed_.begin() + static_cast<std::ptrdiff_t>(span.first), span.count, true);
  }

  void claim_group(size_t index) {
    const Group& group = scene_.groups[index];
    const Said& said = group.said;
    for (const Span& span : said.noun) claim(span);
    claim(said.count);
    claim(said.font);
    for (size_t i = 0; i < std::min(said.colours.size(), painted_colours(group)); ++i) {
      claim(said.colours[i]);
    }
    for (size_t i = 0; i < group.words.size(); ++i) claim({said.words[i], 1});
    const std::vector<Box>& boxes = boxes_[index];
    const auto all = [&](auto condition) { return std::ranges::all_of(boxes, condition); };
    if (has_its_size(index)) claim(said.size);
    const auto is_place = [&](const Span& span) { return !is_direction(group, span); };
    if (is_place(said.row) && all([&](const Box& box) { return lies_in(box, group.row); })) {
      claim(said.row);
    }
    if ((group.column == Column::right || is_place(said.column)) &&
        all([&](const Box& box) { return lies_in(box, group.column); })) {
      claim(said.column);
    }
    if (stand_side_by_side(boxes)) claim(said.side_by_side);
    if (index == 0) return;
    const std::vector<Box>& before = boxes_[index - 1];
    if (all([&](const Box& box) {
          return std::ranges::all_of(
              before, [&](const Box& other) { return lies(box, group.order, other); });
        })) {
      claim(said.order);
    }
  }

  static bool stand_side_by_side(const std::vector<Box>& boxes) {
    for (size_t i = 1; i < boxes.size(); ++i) {
      if (!is_left(boxes[i - 1], boxes[i])) return false;
    }
    return true;
  }

  // "an arrow to the left", "a left arrow": the model's point to the right, wherever they are.
  bool is_direction(const Group& group, const Span& place) const {
    if (!group.thing || words_.things[*group.thing].noun != "arrow" || place.count == 0)
      return false;
    const Token& joint = tokens_[place.first];
    return !joint.is("on") && !joint.is("at") && !joint.is("in");
  }

  size_t painted_colours(const Group& group) const {
    const bool has_two = group.thing && words_.things[*group.thing].usual.size() > 1;
    return std::min(group.colours.size(), has_two ? 2 : group.elements());
  }

  // Whether it differs from what it would be without the word.
  bool has_its_size(size_t index) const {
    if (scene_.groups[index].size == Size::usual) return true;
    Scene plain = scene_;
    plain.groups[index].size = Size::usual;
    const int usual = arrange(plain, words_)[index][0].height;
    const int height = boxes_[index][0].height;
    return scene_.groups[index].size == Size::large ? height > usual : height < usual;
  }

  bool has_colour(const Group& group, const Rgb& colour) const {
    const auto end = group.colours.begin() + static_cast<std::ptrdiff_t>(painted_colours(group));
    return std::any_of(group.colours.begin(), end,
                       [&](const Rgb& each) { return words_.is_kind_of(each, colour); });
  }

  bool is_honoured(const Negation& negation) const {
    if (negation.always_there) return false;
    const bool only_colours = !negation.thing && negation.words.empty() && !negation.letters;
    for (size_t i = 0; i < scene_.groups.size(); ++i) {
      const Group& group = scene_.groups[i];
      if (negation.group && negation.group != i) continue;
      const bool has_colours = std::ranges::any_of(
          negation.colours, [&](const Rgb& colour) { return has_colour(group, colour); });
      const bool is_it = negation.thing && group.thing == negation.thing;
      const bool has_count = !negation.count || group.count == negation.count;
      if (is_it && has_count && (negation.colours.empty() || has_colours)) return false;
      if (only_colours && has_colours) return false;
      if (negation.letters && !group.thing) return false;
      if (group.thing && denies_part(negation.said, words_.things[*group.thing].noun)) return false;
      for (const std::string& word : negation.words) {
        if (std::ranges::find(group.words, word) != group.words.end()) return false;
      }
    }
    if (!only_colours || negation.group) return true;
    return std::ranges::none_of(negation.colours, [&](const Rgb& colour) {
      return std::ranges::any_of(
          scene_.background, [&](const Rgb& ground) { return words_.is_kind_of(ground, colour); });
    });
  }

  // "a sun, no rays"
  bool denies_part(const Span& said, const std::string& noun) const {
    for (size_t i = said.first; i < said.first + said.count; ++i) {
      if (may_have(noun, tokens_[i].lower)) return true;
    }
    return false;
  }

  void name_unclaimed(size_t index) {
    const Token& token = tokens_[index];
    if (claimed_[index] || token.kind == Token::Kind::mark) return;
    if (token.kind == Token::Kind::quote) return name("\"" + token.text + "\"");
    if (token.kind == Token::Kind::colour) return name(token.text);
    if (token.is("of") && joins_painted(index)) return name(token.text);
    if (is(token.lower, Role::function) && !is_noun(index)) return;
    // "colour the star green"
    const bool is_command = (token.is("colour") || token.is("color")) &&
                            index + 1 < tokens_.size() && tokens_[index + 1].is("the");
    if (is_command) return;
    // "on a horse": that the horse is left out says it all. Between what is painted it matters.
    if (is(token.lower, Role::joint) && next_is_painted(index) == false) return;
    if (is(token.lower, Role::joint) && is_about_picture(index)) return;
    const bool is_next_to =
        token.is("next") && index + 1 < tokens_.size() && tokens_[index + 1].is("to");
    if (is_next_to) claim({index + 1, 1});
    name(is_next_to ? "next to" : token.text);
  }

  // Whether the next word of content is; none: there is none before the clause ends.
  std::optional<bool> next_is_painted(size_t index) const {
    for (size_t i = index + 1; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == Token::Kind::mark) return std::nullopt;
      const bool is_function =
          tokens_[i].kind == Token::Kind::word && is(tokens_[i].lower, Role::function);
      if (claimed_[i] || !is_function) return claimed_[i];
    }
    return std::nullopt;
  }

  // "a render of a heart", where nobody commands; "I ❤ NY", where nobody asks for anything.
  bool is_noun(size_t index) const {
    const auto is_any_of = [](const Token& token, std::initializer_list<std::string_view> words) {
      return std::ranges::any_of(words, [&](std::string_view word) { return token.is(word); });
    };
    const Token& token = tokens_[index];
    if (token.is("i")) {
      return index + 1 == tokens_.size() || tokens_[index + 1].kind != Token::Kind::word ||
             !(is(tokens_[index + 1].lower, Role::function) ||
               is(tokens_[index + 1].lower, Role::negation));
    }
    const bool has_article =
        index > 0 && is_any_of(tokens_[index - 1], {"a", "an", "my", "your", "another"});
    const bool has_of = index + 1 < tokens_.size() && tokens_[index + 1].is("of");
    return (has_article || has_of) &&
           is_any_of(token, {"draw", "paint", "show", "make", "create", "generate", "render",
                             "give", "want", "need", "must", "write"});
  }

  // "in this picture"
  bool is_about_picture(size_t joint) const {
    size_t at = joint + 1;
    while (at < tokens_.size() && is(tokens_[at].lower, Role::article)) ++at;
    return at < tokens_.size() &&
           (tokens_[at].is("picture") || tokens_[at].is("image") || tokens_[at].is("drawing"));
  }

  // "a circle of stars", but not "a pair of hearts"
  bool joins_painted(size_t index) const {
    return index > 0 && claimed_[index - 1] && !number_of(tokens_[index - 1].lower) &&
           next_is_painted(index) == true;
  }

  static bool is_of(const Group& group, size_t token) {
    const auto has = [&](const Span& span) {
      return token >= span.first && token < span.first + span.count;
    };
    return has(group.said.count) || has(group.said.size) ||
           std::ranges::any_of(group.said.colours, has) ||
           std::ranges::any_of(group.said.noun, has);
  }

  // Of what is there only in part.
  void name_missing(const Group& group) {
    if (group.thing && group.count < group.wanted) {
      const Span& noun = group.said.noun.front();
      const bool has_count = group.said.count.count > 0;
      std::string phrase;
      for (size_t i = has_count ? group.said.count.first : noun.first; i < noun.first + noun.count;
           ++i) {
        if (tokens_[i].kind == Token::Kind::mark || (group.said.shares_noun && !is_of(group, i))) {
          continue;
        }
        phrase += (phrase.empty() ? "" : " ") + tokens_[i].text;
      }
      phrase += ": " + std::string(number_word(group.count));
      name(phrase + (group.count == 1 ? " fits" : " fit"));
    }
    std::vector<size_t> texts = group.said.words;
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    for (const size_t token : texts) {
      for (const std::string& loss : words_.losses_of(tokens_[token].text)) name(loss);
    }
  }

  // "a tree house" is neither; "a tree, a house" and "tree house" without an article may be a list.
  void name_compound(size_t index) {
    const Group& first = scene_.groups[index - 1];
    const Group& second = scene_.groups[index];
    if (!first.thing || !second.thing || first.wanted != 1) return;
    const Span& noun = first.said.noun.front();
    const Span& next = second.said.noun.front();
    if (noun.first + noun.count != next.first) return;
    size_t before = noun.first;
    while (before > 0 && claimed_[before - 1]) --before;
    if (before == 0 || !is(tokens_[before - 1].lower, Role::article)) return;
    std::string phrase;
    for (size_t i = noun.first; i < next.first + next.count; ++i) {
      phrase += (phrase.empty() ? "" : " ") + tokens_[i].text;
    }
    name("\"" + phrase + "\" as one thing");
  }

  // Those from `first` on.
  void name_words(const Group& group, size_t first) {
    for (size_t i = first; i < group.said.words.size(); ++i) {
      name("\"" + piece_of(group, i) + "\"");
      claim({group.said.words[i], 1});
    }
  }

  std::string piece_of(const Group& group, size_t index) const {
    const size_t token = group.said.words[index];
    size_t first = index;
    while (first > 0 && group.said.words[first - 1] == token) --first;
    return words_.pieces_of(tokens_[token].text)[index - first];
  }

  // Once each.
  void name(const std::string& what) {
    if (named_.insert(what).second) left_out_.push_back(what);
  }

  const std::vector<Token>& tokens_;
  const Scene& scene_;
  const Boxes& boxes_;
  const Words& words_;
  std::vector<bool> claimed_;
  std::vector<std::string> left_out_;
  std::set<std::string> named_;
};

}  // namespace

std::vector<std::string> find_left_out(const std::vector<Token>& tokens, const Scene& scene,
                                       const Boxes& boxes, const Words& words) {
  return Account(tokens, scene, boxes, words).left_out();
}

}  // namespace octet::demo
