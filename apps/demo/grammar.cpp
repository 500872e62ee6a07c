#include "demo/grammar.h"

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

}  // namespace

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
