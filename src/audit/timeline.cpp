#include <algorithm>
#include <array>
#include <limits>

#include "audit/work_list.h"

namespace octet::audit {

AuditTimeline timeline_of(const WorkList& list) {
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const Work& work : list.works()) {
    const double start = list.start_us(work);
    first = std::min(first, start);
    last = std::max(last, start + list.us(work));
  }
  AuditTimeline timeline;
  if (!(last > first)) return timeline;
  timeline.start_us = first;
  timeline.piece_us = (last - first) / kTimelinePieces;
  std::array<std::array<double, kTimelinePieces>, kWorkClasses> us{};
  std::array<bool, kWorkClasses> present{};
  const auto piece_of = [&](double time) {
    const double piece = (time - first) / timeline.piece_us;
    return std::clamp<size_t>(piece > 0 ? static_cast<size_t>(piece) : 0, 0, kTimelinePieces - 1);
  };
  for (const Work& work : list.works()) {
    const double start = list.start_us(work), end = start + list.us(work);
    const auto row = static_cast<size_t>(work.work);
    present[row] = true;
    for (size_t piece = piece_of(start); piece <= piece_of(end); ++piece) {
      const double from = first + timeline.piece_us * static_cast<double>(piece);
      const double within = std::min(end, from + timeline.piece_us) - std::max(start, from);
      us[row][piece] += std::max(within, 0.0);
    }
  }
  for (size_t row = 0; row < us.size(); ++row) {
    if (!present[row]) continue;
    timeline.keys.emplace_back(key_of(static_cast<WorkClass>(row)));
    timeline.us.emplace_back(us[row].begin(), us[row].end());
  }
  return timeline;
}

}  // namespace octet::audit
