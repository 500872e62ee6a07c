#include "demo/grammar.h"

#include <algorithm>
#include <span>
#include <utility>

namespace octet::demo {
namespace {

using WordList = std::span<const std::string_view>;

constexpr std::string_view kArticles[] = {"a",    "an",  "the", "this", "these",
                                          "that", "its", "my",  "each", "another"};
constexpr std::string_view kPronouns[] = {"it", "them", "that", "this", "which", "these"};
constexpr std::string_view kPlainAdjectives[] = {"plain", "solid",    "flat",  "bright", "clean",
                                                 "pure",  "colorful", "vivid", "simple", "bold"};
constexpr std::string_view kConnectors[] = {"and", "with", "plus", "then", "also"};
constexpr std::string_view kPrepositions[] = {
    "in",     "on",    "at",   "by",     "of",      "to",         "from",   "for",     "into",
    "and",    "with",  "is",   "as",     "or",      "above",      "over",   "below",   "under",
    "beside", "next",  "near", "behind", "beneath", "underneath", "around", "between", "against",
    "left",   "right", "top",  "bottom", "written", "painted",    "that",   "has",     "are"};
constexpr std::string_view kLetters[] = {"text",   "letters",  "letter",  "lettering",
                                         "title",  "headline", "caption", "label",
                                         "slogan", "number",   "words"};
constexpr std::string_view kTypefaces[] = {"font",     "type",      "typeface",  "style",  "digits",
                                           "capitals", "uppercase", "lowercase", "colour", "color"};
constexpr std::string_view kNamesAWord[] = {"word",   "named",    "called",
                                            "titled", "labelled", "labeled"};
constexpr std::string_view kNamesWords[] = {"saying", "says",     "say",    "reading", "reads",
                                            "read",   "spelling", "spells", "words"};

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

bool holds(WordList list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

template <class Value, size_t n>
std::optional<Value> value_of(const std::pair<std::string_view, Value> (&table)[n],
                              std::string_view word) {
  for (const auto& [each, value] : table) {
    if (each == word) return value;
  }
  return std::nullopt;
}

}  // namespace

bool is_article(std::string_view word) { return holds(kArticles, word); }
bool is_pronoun(std::string_view word) { return holds(kPronouns, word); }
bool is_plain_adjective(std::string_view word) { return holds(kPlainAdjectives, word); }
bool is_connector(std::string_view word) { return holds(kConnectors, word); }
bool is_preposition(std::string_view word) { return holds(kPrepositions, word); }
bool is_letters(std::string_view word) { return holds(kLetters, word); }
bool is_typeface(std::string_view word) { return holds(kTypefaces, word); }
bool names_a_word(std::string_view word) { return holds(kNamesAWord, word); }
bool names_words(std::string_view word) { return holds(kNamesWords, word); }

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
