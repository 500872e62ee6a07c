#include <algorithm>
#include <utility>

#include "demo/scene_reader.h"

namespace octet::demo {

void SceneReader::set_order(Group& group, Order order) {
  group.order = order;
  group.said.order = said_order_;
}

bool SceneReader::is_place(size_t at) const {
  return is_any(at,
                {"top", "upper", "bottom", "lower", "middle", "center", "centre", "left", "right"});
}

bool SceneReader::read_side_by_side() {
  const auto order = phrases_.is_word(at_) ? order_of(phrases_[at_].lower) : std::nullopt;
  size_t end = 0;
  if (const size_t words = phrases_.starts_with(at_, "side by side")) {
    end = at_ + words;
  } else if (order == Order::right || phrases_.starts_with(at_, "next to") > 0) {
    const size_t other = at_ + (is(at_, "next") ? 2 : 1);
    if (phrases_.starts_with(other, "each other") || phrases_.starts_with(other, "one another")) {
      end = other + 2;
    }
  }
  if (end == 0) return false;
  const Span said{at_, end - at_};
  const bool is_last = current_ != kNone && current_ + 1 == scene_.groups.size();
  if (is_last && scene_.groups[current_].wanted > 1) {
    scene_.groups[current_].said.side_by_side = said;
  } else if (is_last && current_ > 0) {
    said_order_ = said;
    set_order(scene_.groups[current_], Order::right);
  }
  at_ = end;
  return true;
}

bool SceneReader::read_place() {
  if (read_side_by_side()) return true;
  if (is(at_, "on") && is(at_ + 1, "top") && is(at_ + 2, "of")) return read_order(Order::below, 3);
  if (is(at_, "next") && is(at_ + 1, "to")) return read_order(Order::right, 2);
  if (is(at_, "left") && is(at_ + 1, "of")) return read_order(Order::right, 2);
  if (is(at_, "right") && is(at_ + 1, "of")) return read_order(Order::left, 2);
  if (is(at_, "top") && is(at_ + 1, "of") && has_noun_after(at_ + 2)) {
    return read_order(Order::below, 2);
  }
  if (const auto order = order_of(phrases_[at_].lower)) return read_order(*order, 1);
  // "an arrow pointing left" says nothing about a place.
  if (!is_place(at_) || (at_ > 0 && unknown_ == at_ - 1)) return false;
  const size_t first = phrases_.with_joint(at_);
  const size_t word = at_++;
  // Behind what it is about, or before.
  if (!is_new_ && current_ == kNone) return true;
  Place place = place_of(word);
  const bool is_last = !is_new_ && current_ != kNone;
  Row& row = is_last ? scene_.groups[current_].row : place_.row;
  Column& column = is_last ? scene_.groups[current_].column : place_.column;
  const bool has_both = (place.row != Row::any || row != Row::any) &&
                        (place.column != Column::any || column != Column::any);
  if (is_any(at_, {"side", "half", "part", "edge"}) || (has_both && is(at_, "corner"))) ++at_;
  const Span said{first, at_ - first};
  if (place.row != Row::any && row == Row::any) {
    row = place.row;
    (is_last ? scene_.groups[current_].said.row : place_.said_row) = said;
  }
  if (place.column != Column::any && column == Column::any) {
    column = place.column;
    (is_last ? scene_.groups[current_].said.column : place_.said_column) = said;
  }
  return true;
}

SceneReader::Place SceneReader::place_of(size_t at) const {
  Place place;
  if (is_any(at, {"top", "upper"})) place.row = Row::top;
  if (is_any(at, {"bottom", "lower"})) place.row = Row::bottom;
  if (is_any(at, {"middle", "center", "centre"})) place.row = Row::middle;
  if (is(at, "left")) place.column = Column::left;
  if (is(at, "right")) place.column = Column::right;
  return place;
}

bool SceneReader::has_noun_after(size_t at) const {
  while (is(at, Role::article)) ++at;
  return phrases_.leads_to_noun(at);
}

bool SceneReader::read_order(Order order, size_t tokens) {
  const size_t first = phrases_.with_joint(at_);
  at_ += tokens;
  said_order_ = {first, at_ - first};
  order_ = current_ == kNone ? Order::any : order;
  order_is_sure_ = is(at_, Role::pronoun);
  if (order_is_sure_) order_ = opposite(order_);
  order_is_behind_ = !is_new_;
  return true;
}

void SceneReader::end_clause() {
  is_new_ = true;
  if (order_ == Order::any || (order_is_sure_ && !order_is_behind_)) return;
  const bool is_last = current_ != kNone && current_ + 1 == scene_.groups.size();
  if (is_last && current_ > 0) {
    set_order(scene_.groups[current_], order_is_sure_ ? order_ : opposite(order_));
  }
  order_ = Order::any;
}

}  // namespace octet::demo
