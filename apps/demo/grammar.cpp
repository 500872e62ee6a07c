#include "demo/grammar.h"

#include <algorithm>
#include <utility>

namespace octet::demo {
namespace {

// Each word between two spaces.
constexpr std::pair<Role, std::string_view> kRoles[] = {
    {Role::article, " a an the this these that its my each another "},
    {Role::pronoun, " it them that this which these "},
    {Role::plain_adjective, " plain solid flat bright clean pure colorful vivid simple bold "},
    {Role::connector, " and with plus then also "},
    {Role::preposition,
     " in on at by of to from for into and with is as or above over below under beside next near "
     "behind beneath underneath around between against left right top bottom written painted that "
     "has are "},
    {Role::letters,
     " text letters letter lettering title headline caption label slogan number words "},
    {Role::typeface, " font type typeface style digits capitals uppercase lowercase colour color "},
    {Role::names_a_word, " word named called titled labelled labeled "},
    {Role::names_words, " saying says say reading reads read spelling spells words "}};

constexpr std::pair<std::string_view, size_t> kNumbers[] = {
    {"one", 1},   {"two", 2},   {"three", 3}, {"four", 4},    {"five", 5}, {"six", 6},
    {"seven", 7}, {"eight", 8}, {"nine", 9},  {"ten", 10},    {"pair", 2}, {"couple", 2},
    {"both", 2},  {"few", 3},   {"some", 3},  {"several", 3}, {"many", 4}};
constexpr std::pair<std::string_view, Size> kSizes[] = {
    {"big", Size::large},    {"large", Size::large},    {"huge", Size::large},
    {"giant", Size::large},  {"enormous", Size::large}, {"small", Size::small},
    {"little", Size::small}, {"tiny", Size::small},     {"mini", Size::small}};
constexpr std::pair<std::string_view, Order> kOrders[] = {
    {"above", Order::below},  {"over", Order::below},    {"below", Order::above},
    {"under", Order::above},  {"beneath", Order::above}, {"underneath", Order::above},
    {"beside", Order::right}, {"near", Order::right},    {"alongside", Order::right}};

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

std::string with_plain_quotes(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kQuotes[] = {
      {"“", '"'}, {"”", '"'},  {"„", '"'},  {"«", '"'},
      {"»", '"'}, {"‘", '\''}, {"’", '\''}, {"‚", '\''}};
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
  void add(Token::Kind kind, std::string_view text, size_t taken) {
    tokens_.push_back({.kind = kind, .text = std::string(text), .lower = {}});
    at_ += taken;
  }

  void step() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      const size_t close = closing_quote(text_, at_);
      if (close == text_.npos) {
        ++at_;
      } else {
        add(Token::Kind::quote, text_.substr(at_ + 1, close - at_ - 1), close - at_ + 1);
      }
    } else if (parse_rgb(text_.substr(at_, 7)) &&
               (at_ + 7 == text_.size() || !is_letter(text_[at_ + 7]))) {
      add(Token::Kind::colour, text_.substr(at_, 7), 7);
    } else if (is_letter(c)) {
      add_word();
    } else if (c == '&' || c == '+') {
      add(Token::Kind::word, "and", 1);
      tokens_.back().lower = "and";
    } else if (std::string_view(",;.()!?\n").find(c) != std::string_view::npos) {
      add(Token::Kind::mark, text_.substr(at_, 1), 1);
    } else {
      ++at_;
    }
  }

  void add_word() {
    size_t end = at_;
    const auto is_apostrophe = [&] {
      return text_[end] == '\'' && end + 1 < text_.size() && is_letter(text_[end + 1]);
    };
    while (end < text_.size() && (is_letter(text_[end]) || is_apostrophe())) ++end;
    add(Token::Kind::word, text_.substr(at_, end - at_), end - at_);
    Token& token = tokens_.back();
    token.lower = token.text;
    for (char& c : token.lower) c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
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
  const auto is_plain = [](char c) { return is_upper(c) || is_digit(c); };
  return token.kind == Token::Kind::word && capitals >= 2 &&
         std::all_of(token.text.begin(), token.text.end(), is_plain);
}

bool is(std::string_view word, Role role) {
  return value_of(kRoles, role)->find(" " + std::string(word) + " ") != std::string_view::npos;
}

std::optional<size_t> number_of(std::string_view word) {
  if (word.empty() || word.size() > 2) return value_of(kNumbers, word);
  size_t number = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + static_cast<size_t>(c - '0');
  }
  return number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<Size> size_of(std::string_view word) { return value_of(kSizes, word); }
std::optional<Order> order_of(std::string_view word) { return value_of(kOrders, word); }

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
