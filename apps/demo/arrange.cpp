#include <algorithm>
#include <cmath>
#include <numeric>

#include "demo/scene.h"

namespace octet::demo {
namespace {

constexpr double kGap = 12;  // at least, between two and to the edge

// As in the scenes of the training.
constexpr double kThing[] = {112, 60, 132};   // of a Size
constexpr double kCapitals[] = {48, 26, 64};  // their height, of a Size
constexpr double kLetterWidth = 0.95;         // of their height
constexpr double kLeastHeight = 18;           // of what lies beside others
constexpr size_t kMostThingsInARow = 3;

double fit(double needed, size_t count) {
  const double space = kSide - kGap * static_cast<double>(count + 1);
  return std::min(1.0, space / needed);
}

struct Item {
  size_t group = 0, member = 0;
  double width = 0, height = 0;
  Column column = Column::any;
};

struct Line {
  std::vector<Item> items;
  Row row = Row::any;
  bool has_words = false;

  bool all_have_columns() const {
    return std::all_of(items.begin(), items.end(),
                       [](const Item& item) { return item.column != Column::any; });
  }
  double height() const {
    double most = 0;
    for (const Item& item : items) most = std::max(most, item.height);
    return most;
  }
  double width() const {
    return std::accumulate(items.begin(), items.end(), 0.0,
                           [](double sum, const Item& item) { return sum + item.width; });
  }
  // Whether nothing becomes too small when another one joins.
  bool has_room_for(const Item& other) const {
    double least = other.height;
    for (const Item& item : items) least = std::min(least, item.height);
    return least * fit(width() + other.width, items.size() + 1) >= kLeastHeight;
  }
  void scale(double factor) {
    for (Item& item : items) {
      item.width *= factor;
      item.height *= factor;
    }
  }
};

Item item_of(const Group& group, size_t index, size_t member, const Words& words) {
  Item item{.group = index, .member = member, .column = group.column};
  const size_t size = static_cast<size_t>(group.size);
  if (group.thing) {
    const double shape = words.things[*group.thing].shape;
    item.width = kThing[size] * std::min(1.0, shape);
    item.height = kThing[size] / std::max(1.0, shape);
  } else {
    item.height = kCapitals[size];
    item.width = kLetterWidth * item.height * static_cast<double>(group.words[member].size());
  }
  return item;
}

// Puts groups into lines in the order of the text: things side by side, each word by itself.
class Lines {
 public:
  Lines(const Scene& scene, const Words& words) : words_(words) {
    for (size_t i = 0; i < scene.groups.size(); ++i) add(scene.groups[i], i);
    split_things();
    for (Line& line : lines_) {
      std::stable_sort(line.items.begin(), line.items.end(), [](const Item& a, const Item& b) {
        return rank(a.column) < rank(b.column);
      });
    }
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const Line& a, const Line& b) { return rank(a.row) < rank(b.row); });
  }

  std::vector<Line> take() { return std::move(lines_); }

 private:
  static int rank(Column column) {
    return column == Column::left ? 0 : column == Column::right ? 2 : 1;
  }
  static int rank(Row row) { return row == Row::top ? 0 : row == Row::bottom ? 2 : 1; }

  void add(const Group& group, size_t index) {
    const bool is_beside = group.order == Order::left || group.order == Order::right;
    const Item first = item_of(group, index, 0, words_);
    if (!is_beside || lines_.empty() || !lines_[last_].has_room_for(first)) {
      last_ = line_for(group, first);
    }
    const bool is_first = group.order == Order::left;
    for (size_t member = 0; member < group.elements(); ++member) {
      if (!group.thing && member > 0) insert_line(last_ + 1, group.row);
      Line& line = lines_[last_];
      const Item item = item_of(group, index, member, words_);
      line.items.insert(is_first ? line.items.begin() : line.items.end(), item);
      line.has_words |= !group.thing;
    }
  }

  size_t line_for(const Group& group, const Item& item) {
    if (group.order == Order::above) return insert_line(last_, group.row);
    if (group.order == Order::below && !lines_.empty()) return insert_line(last_ + 1, group.row);
    const size_t first = group.row != Row::any || lines_.empty() ? 0 : last_;
    for (size_t i = first; i < lines_.size(); ++i) {
      const bool suits = group.thing && !lines_[i].has_words;
      const bool both_say = group.column != Column::any && lines_[i].all_have_columns();
      if (lines_[i].row == group.row && (suits || both_say) && lines_[i].has_room_for(item)) {
        return i;
      }
    }
    return insert_line(lines_.size(), group.row);
  }

  size_t insert_line(size_t at, Row row) {
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at), Line{.items = {}, .row = row});
    return last_ = at;
  }

  // Four things alone are a square of them.
  void split_things() {
    if (lines_.size() != 1 || lines_[0].items.size() <= kMostThingsInARow) return;
    if (lines_[0].has_words || lines_[0].row != Row::any) return;
    std::vector<Item>& items = lines_[0].items;
    const auto half = items.begin() + static_cast<std::ptrdiff_t>((items.size() + 1) / 2);
    Line second{.items = {half, items.end()}};
    items.erase(half, items.end());
    lines_.push_back(std::move(second));
  }

  const Words& words_;
  std::vector<Line> lines_;
  size_t last_ = 0;  // that of the last group
};

void fit_into_picture(std::vector<Line>& lines) {
  double height = 0;
  for (Line& line : lines) {
    line.scale(fit(line.width(), line.items.size()));
    height += line.height();
  }
  for (Line& line : lines) line.scale(fit(height, lines.size()));
}

// The upper edge of each line: those at the top and at the bottom lie at the edge, the others are
// spread over what is left.
std::vector<double> edges_of(const std::vector<Line>& lines) {
  std::vector<double> edges(lines.size());
  double begin = 0, end = kSide, needed = 0;
  size_t others = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].row == Row::top) {
      edges[i] = begin + kGap;
      begin = edges[i] + lines[i].height();
    } else if (lines[i].row != Row::bottom) {
      needed += lines[i].height();
      ++others;
    }
  }
  for (size_t i = lines.size(); i-- > 0;) {
    if (lines[i].row != Row::bottom) continue;
    edges[i] = end - kGap - lines[i].height();
    end = edges[i];
  }
  const double gap = (end - begin - needed) / static_cast<double>(others + 1);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].row == Row::top || lines[i].row == Row::bottom) continue;
    edges[i] = begin + gap;
    begin = edges[i] + lines[i].height();
  }
  return edges;
}

void place(const Line& line, double top, std::vector<std::vector<Box>>& boxes) {
  const bool at_left = line.items.front().column == Column::left;
  const bool at_right = line.items.back().column == Column::right;
  const size_t spaces = line.items.size() + 1 - (at_left ? 1 : 0) - (at_right ? 1 : 0);
  const double free = kSide - line.width() - kGap * ((at_left ? 1 : 0) + (at_right ? 1 : 0));
  const double gap = spaces > 0 ? free / static_cast<double>(spaces) : 0;
  double x = at_left ? kGap : gap;
  for (const Item& item : line.items) {
    const double y = top + (line.height() - item.height) / 2;
    boxes[item.group][item.member] = {
        static_cast<int>(std::lround(x)), static_cast<int>(std::lround(y)),
        static_cast<int>(std::lround(item.width)), static_cast<int>(std::lround(item.height))};
    x += item.width + gap;
  }
}

}  // namespace

std::vector<std::vector<Box>> arrange(const Scene& scene, const Words& words) {
  std::vector<std::vector<Box>> boxes;
  for (const Group& group : scene.groups) boxes.emplace_back(group.elements());
  std::vector<Line> lines = Lines(scene, words).take();
  fit_into_picture(lines);
  const std::vector<double> edges = edges_of(lines);
  for (size_t i = 0; i < lines.size(); ++i) place(lines[i], edges[i], boxes);
  return boxes;
}

}  // namespace octet::demo
