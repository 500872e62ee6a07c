#include "demo/grammar.h"

#include <algorithm>
#include <utility>

namespace octet::demo {
namespace {

// Each word between two spaces.
constexpr std::pair<Role, std::string_view> kRoles[] = {
    {Role::function,
     " a an the this that these those its my your our their his her another it they them which "
     "who there here and with plus then also too but just only of is are was were be being been "
     "has have having should must will it's that's there's let's please draw paint show make "
     "create generate render give want need would like i i'd me we you can could do some any "
     "write written drawn painted picture image exactly s "},
    {Role::article, " a an the this these those that its my your our their his her another any "},
    {Role::pronoun, " it them that this which these those "},
    {Role::plain_adjective, " plain solid flat simple "},
    {Role::connector, " and with plus then also but just only "},
    {Role::joint, " in on at from to into by for as "},
    {Role::preposition,
     " in on at by of to from for into and with is as or above over below under beside next near "
     "behind beneath underneath around between against left right top bottom written painted that "
     "has are but without "},
    {Role::negation,
     " no not without except excluding never neither nor zero 0 nothing none dont avoid lacking "
     "exclude omit skip sans minus remove delete erase forget replace swap devoid "},
    {Role::letters,
     " text texts letters letter lettering title headline caption label slogan number words "},
    {Role::typeface, " font type typeface style colour color "},
    {Role::names_a_word, " word named called titled labelled labeled "},
    {Role::picture_term,
     " hd uhd qhd fhd hdr png jpg jpeg svg gif webp pdf rgb rgba cmyk cgi dslr ui ux ai vr nsfw "
     "sfw "},
    {Role::names_words, " saying says say reading reads read spelling spells words "}};

constexpr std::pair<std::string_view, size_t> kNumbers[] = {
    {"one", 1},       {"single", 1},     {"two", 2},         {"three", 3},        {"four", 4},
    {"five", 5},      {"six", 6},        {"seven", 7},       {"eight", 8},        {"nine", 9},
    {"ten", 10},      {"eleven", 11},    {"twelve", 12},     {"thirteen", 13},    {"fourteen", 14},
    {"fifteen", 15},  {"sixteen", 16},   {"seventeen", 17},  {"eighteen", 18},    {"nineteen", 19},
    {"twenty", 20},   {"thirty", 30},    {"forty", 40},      {"fifty", 50},       {"sixty", 60},
    {"seventy", 70},  {"eighty", 80},    {"ninety", 90},     {"dozen", 12},       {"dozens", 24},
    {"hundred", 100}, {"hundreds", 200}, {"thousand", 1000}, {"thousands", 2000}, {"pair", 2},
    {"couple", 2},    {"duo", 2},        {"trio", 3},        {"quartet", 4},      {"both", 2},
    {"few", 3},       {"some", 3},       {"several", 3},     {"many", 4},         {"lots", 4}};
constexpr std::pair<std::string_view, Size> kSizes[] = {
    {"big", Size::large},    {"large", Size::large},    {"huge", Size::large},
    {"giant", Size::large},  {"enormous", Size::large}, {"small", Size::small},
    {"little", Size::small}, {"tiny", Size::small},     {"mini", Size::small}};
constexpr std::pair<std::string_view, Order> kOrders[] = {
    {"above", Order::below},  {"over", Order::below},    {"below", Order::above},
    {"under", Order::above},  {"beneath", Order::above}, {"underneath", Order::above},
    {"beside", Order::right}, {"near", Order::right},    {"alongside", Order::right},
    {"by", Order::right}};
constexpr std::pair<std::string_view, bool> kCases[] = {
    {"capital", true}, {"capitals", true}, {"uppercase", true}, {"lowercase", false}};

template <class Key, class Value, size_t n>
std::optional<Value> value_of(const std::pair<Key, Value> (&table)[n], Key key) {
  for (const auto& [each, value] : table) {
    if (each == key) return value;
  }
  return std::nullopt;
}

// Far beyond what fits on a picture; keeps a text of opening quotes from being searched over and
// over.
constexpr size_t kLongestQuotation = 200;

constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Letters of all other scripts are bytes above ASCII.
constexpr bool is_letter(char c) {
  return is_upper(c) || (c >= 'a' && c <= 'z') || is_digit(c) || static_cast<signed char>(c) < 0;
}

// In a quotation the two characters of a line break are one.
std::string with_line_breaks(std::string text) {
  for (size_t at; (at = text.find("\\n")) != text.npos;) text.replace(at, 2, "\n");
  return text;
}

std::string with_plain_quotes(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kQuotes[] = {
      {"“", '"'},  {"”", '"'},  {"„", '"'},  {"«", '"'},  {"»", '"'},  {"「", '"'},
      {"」", '"'}, {"『", '"'}, {"』", '"'}, {"＂", '"'}, {"‘", '\''}, {"’", '\''},
      {"‚", '\''}, {"‹", '\''}, {"›", '\''}, {"´", '\''}, {"`", '\''}};
  std::string plain;
  while (!text.empty()) {
    size_t taken = 1;
    char c = text[0];
    for (const auto& [typographic, quote] : kQuotes) {
      if (!text.starts_with(typographic)) continue;
      taken = typographic.size();
      c = quote;
    }
    plain += c;
    text.remove_prefix(taken);
  }
  return plain;
}

// What is no letter, though its bytes are above ASCII, and the mark it stands for; a space: none.
struct Punctuation {
  std::string_view text;
  char mark;
};

Punctuation punctuation_at(std::string_view text) {
  static constexpr Punctuation kAll[] = {
      {"\u00a0", ' '}, {"\u00ad", ' '}, {"\u2002", ' '},  {"\u2003", ' '}, {"\u2009", ' '},
      {"\u200b", ' '}, {"\u202f", ' '}, {"\u3000", ' '},  {"\ufeff", ' '}, {"\u2010", ' '},
      {"\u2011", ' '}, {"–", ','},      {"—", ','},       {"•", ','},      {"·", ','},
      {"…", '.'},      {"、", ','},     {"，", ','},      {"。", '.'},     {"；", ';'},
      {"：", ' '},     {"！", '!'},     {"？", '?'},      {"（", '('},     {"）", ')'},
      {"¡", '!'},      {"¿", '?'},      {"\u2028", '\n'}, {"\u2029", '\n'}};
  for (const Punctuation& each : kAll) {
    if (text.starts_with(each.text)) return each;
  }
  return {};
}

// Where the quotation that opens at `open` ends; npos: it is none, as in "don't" and "5'".
size_t closing_quote(std::string_view text, size_t open) {
  const char quote = text[open];
  const bool single = quote == '\'';
  if (single && open > 0 && is_letter(text[open - 1])) return text.npos;
  const size_t end = std::min(text.size(), open + kLongestQuotation);
  for (size_t i = open + 1; i < end; ++i) {
    const bool inside_word = single && i + 1 < text.size() && is_letter(text[i + 1]);
    if (text[i] == quote && !inside_word) return i;
  }
  return text.npos;
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : text_(text) {}

  std::vector<Token> read() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }

 private:
  void add(Token::Kind kind, std::string text, size_t taken) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .lower = {}, .joined = false});
    at_ += taken;
  }

  void step() {
    const char c = text_[at_];
    if (is_contracted_and()) {
      add_word(/*taken_before=*/1);
      ++at_;
    } else if (c == '"' || c == '\'') {
      const size_t close = closing_quote(text_, at_);
      if (close == text_.npos) {
        ++at_;
      } else {
        add(Token::Kind::quote,
            with_line_breaks(std::string(text_.substr(at_ + 1, close - at_ - 1))), close - at_ + 1);
      }
    } else if (parse_rgb(text_.substr(at_, 7)) &&
               (at_ + 7 == text_.size() || !is_letter(text_[at_ + 7]))) {
      add(Token::Kind::colour, std::string(text_.substr(at_, 7)), 7);
    } else if (const Punctuation found = punctuation_at(text_.substr(at_)); !found.text.empty()) {
      if (found.mark != ' ') add(Token::Kind::mark, std::string(1, found.mark), 0);
      at_ += found.text.size();
    } else if (text_.substr(at_).starts_with("\\n")) {
      add(Token::Kind::mark, "\n", 2);
    } else if (is_letter(c)) {
      if (!take_short_with()) add_word();
    } else if (c == '&' || c == '+') {
      add(Token::Kind::word, "and", 1);
      tokens_.back().lower = "and";
    } else if (c == '/' || c == '|') {
      add(Token::Kind::mark, ",", 1);
    } else if (c == ':' && !tokens_.empty() && tokens_.back().is("no")) {
      add(Token::Kind::mark, ",", 1);  // "hearts, no: stars" wants stars
    } else if (std::string_view(",;.()!?\n").find(c) != std::string_view::npos) {
      add(Token::Kind::mark, std::string(1, c), 1);
    } else {
      ++at_;
    }
  }

  // "rock 'n' roll", where nobody quotes an n.
  bool is_contracted_and() const {
    if (!text_.substr(at_).starts_with("'n' ") || tokens_.empty()) return false;
    const Token& last = tokens_.back();
    return last.kind == Token::Kind::word && !octet::demo::is(last.lower, Role::letters) &&
           !octet::demo::is(last.lower, Role::names_a_word) &&
           !octet::demo::is(last.lower, Role::function) &&
           !octet::demo::is(last.lower, Role::names_words);
  }

  void add_word(size_t taken_before = 0) {
    at_ += taken_before;
    size_t end = at_;
    const auto is_apostrophe = [&] {
      return text_[end] == '\'' && end + 1 < text_.size() && is_letter(text_[end + 1]);
    };
    const auto is_part = [&] {
      return is_letter(text_[end]) && punctuation_at(text_.substr(end)).text.empty();
    };
    // "AT&T", "50%"
    const auto joins = [&] {
      const bool is_and = text_[end] == '&' && end + 1 < text_.size() && is_upper(text_[end + 1]);
      return end > at_ && ((is_and && is_upper(text_[end - 1])) ||
                           (text_[end] == '%' && is_digit(text_[end - 1])));
    };
    while (end < text_.size() && (is_part() || is_apostrophe() || is_in_number(end) || joins())) {
      ++end;
    }
    const std::string_view word = text_.substr(at_, end - at_);
    if (takes_times(word)) return;
    const bool joined = at_ > 1 && text_[at_ - 1] == '-' && is_letter(text_[at_ - 2]);
    add(Token::Kind::word, std::string(word), word.size());
    Token& token = tokens_.back();
    token.joined = joined;
    token.lower = token.text;
    for (char& c : token.lower) c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
    // "STOP!": these marks are part of what is painted, and end the clause all the same.
    if (!is_shouted(token)) return;
    for (; end < text_.size() && (text_[end] == '!' || text_[end] == '?'); ++end) {
      token.text += text_[end];
    }
  }

  // "3 x", "3 ×"
  bool takes_times(std::string_view word) {
    if ((word != "x" && word != "×") || tokens_.empty()) return false;
    Token& last = tokens_.back();
    if (last.kind != Token::Kind::word || !number_of(last.lower)) return false;
    last.text += word;
    last.lower += word;
    at_ += word.size();
    return true;
  }

  // "w/o" and "w/", which are no two words.
  bool take_short_with() {
    const std::string_view rest = text_.substr(at_);
    const bool is_without = rest.starts_with("w/o");
    const size_t size = is_without ? 3 : 2;
    if (!rest.starts_with("w/") || (at_ > 0 && is_letter(text_[at_ - 1]))) return false;
    if (is_without && size < rest.size() && is_letter(rest[size])) return false;
    add(Token::Kind::word, is_without ? "without" : "with", size);
    tokens_.back().lower = tokens_.back().text;
    return true;
  }

  // "2.5", "1/2", "1,000", but not "255,0,0"
  bool is_in_number(size_t at) const {
    const auto digits_from = [&](size_t begin) {
      size_t end = begin;
      while (end < text_.size() && is_digit(text_[end])) ++end;
      return end - begin;
    };
    if (!is_digit(text_[at - 1]) || digits_from(at_) == 0) return false;
    const size_t digits = digits_from(at + 1);
    return ((text_[at] == '.' || text_[at] == '/') && digits > 0) ||
           (text_[at] == ',' && digits == 3);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  return Tokenizer(with_plain_quotes(text)).read();
}

bool is_shouted(const Token& token) {
  const auto capitals = std::count_if(token.text.begin(), token.text.end(), is_upper);
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  return token.kind == Token::Kind::word && capitals >= 2 &&
         std::none_of(token.text.begin(), token.text.end(), is_small);
}

bool is(std::string_view word, Role role) {
  if (role == Role::negation && word.ends_with("n't")) return true;
  return value_of(kRoles, role)->find(" " + std::string(word) + " ") != std::string_view::npos;
}

std::optional<size_t> number_of(std::string_view word) {
  constexpr size_t kMostDigits = 9;
  if (word.empty() || word.size() > kMostDigits) return std::nullopt;
  if (const auto named = value_of(kNumbers, word)) return named;
  for (const std::string_view times : {"x", "×"}) {  // "x3", "2x"
    if (word.size() <= times.size()) continue;
    if (word.starts_with(times)) {
      word.remove_prefix(times.size());
    } else if (word.ends_with(times)) {
      word.remove_suffix(times.size());
    }
  }
  size_t number = 0;
  for (const char c : word) {
    if (c == ',') continue;
    if (!is_digit(c)) return std::nullopt;
    number = 10 * number + static_cast<size_t>(c - '0');
  }
  return number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<Size> size_of(std::string_view word) { return value_of(kSizes, word); }
std::optional<Order> order_of(std::string_view word) { return value_of(kOrders, word); }
std::optional<bool> case_of(std::string_view word) { return value_of(kCases, word); }

Order opposite(Order order) {
  switch (order) {
    case Order::below: return Order::above;
    case Order::above: return Order::below;
    case Order::left: return Order::right;
    case Order::right: return Order::left;
    case Order::any: break;
  }
  return order;
}

}  // namespace octet::demo
