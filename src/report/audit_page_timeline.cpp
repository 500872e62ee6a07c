// The colours of classes of work, and what ran when as SVG.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/audit_page.h"
#include "report/html.h"
#include "report/svg.h"

namespace octet::report {
namespace {

struct ClassColour {
  std::string_view key, colour;
};

// Products on narrow units are green and blue, those in floating point orange; what fake INT8 adds
// is red. All of them can be told apart from the page in light and in dark.
constexpr ClassColour kClassColours[] = {
    {"int8_gemm", "#1c9a5b"},
    {"fp8_gemm", "#1899a8"},
    {"four_bit_gemm", "#4f86e8"},
    {"half_gemm", "#e0902f"},
    {"single_gemm", "#a8611a"},
    {"weight_only_gemm", "#cdb02a"},
    {"gemm", "#9a8f7a"},
    {"dequantize_weight", "#d23b3b"},
    {"quantize_activation", "#a855c7"},
    {"attention", "#3b5fc4"},
    {"convolution", "#6f7fd9"},
    {"norm", "#6fa0b4"},
    {"elementwise", "#93adba"},
    {"copy", "#b0b0b0"},
    {"other", "#858585"},
    {"unknown", "#e05fa8"},
};

constexpr double kTimelineWidth = 960, kTimelineHeight = 170, kTimelineBottom = 26;

double busy_us(const AuditTimeline& timeline, size_t kind, size_t piece) {
  const bool is_there = kind < timeline.us.size() && piece < timeline.us[kind].size();
  return is_there ? std::max(0.0, timeline.us[kind][piece]) : 0;
}

// The name of a class as the table above has it.
std::string class_name(const AuditReport& report, const std::string& key) {
  for (const AuditShare& each : report.classes) {
    if (each.key == key) return each.work;
  }
  return key;
}

std::string time_text(double us) {
  return us < 1e6 ? fmt::format("{:.3g} ms", us / 1e3) : fmt::format("{:.4g} s", us / 1e6);
}

}  // namespace

std::string colour_of(std::string_view key) {
  const bool is_known = std::any_of(std::begin(kClassColours), std::end(kClassColours),
                                    [&](const ClassColour& each) { return each.key == key; });
  return fmt::format("k-{}", is_known ? key : "unknown");
}

std::string colour_style() {
  std::string style;
  for (const auto& [key, colour] : kClassColours) {
    style += fmt::format(".k-{0}{{fill:{1};background:{1}}}\n", key, colour);
  }
  return style;
}

std::string timeline_section(const AuditReport& report) {
  const AuditTimeline& timeline = report.timeline;
  size_t pieces = 0;
  for (const auto& row : timeline.us) pieces = std::max(pieces, row.size());
  if (pieces == 0 || timeline.keys.size() != timeline.us.size()) return "";
  // Streams that run at once may fill a piece more than once.
  double most = timeline.piece_us;
  for (size_t piece = 0; piece < pieces; ++piece) {
    double sum = 0;
    for (size_t kind = 0; kind < timeline.us.size(); ++kind) sum += busy_us(timeline, kind, piece);
    most = std::max(most, sum);
  }
  if (!(most > 0)) return "";
  const double whole_us = timeline.piece_us * static_cast<double>(pieces);
  const double inside = kTimelineHeight - kTimelineBottom;
  const double width = kTimelineWidth / static_cast<double>(pieces);
  std::string svg = svg_begin(kTimelineWidth, kTimelineHeight,
                              fmt::format("Classes of work over {}", time_text(whole_us)));
  std::vector<double> height(pieces, 0);
  std::string legend;
  for (size_t kind = 0; kind < timeline.keys.size(); ++kind) {
    const std::string name = class_name(report, timeline.keys[kind]);
    std::string path;
    for (size_t piece = 0; piece < pieces; ++piece) {
      const double part = inside * busy_us(timeline, kind, piece) / most;
      if (!(part > 0)) continue;
      height[piece] += part;
      path +=
          fmt::format("M{:.1f} {:.1f}h{:.2f}v{:.2f}h-{:.2f}z", width * static_cast<double>(piece),
                      inside - height[piece], width, part, width);
    }
    if (path.empty()) continue;
    const std::string colour = colour_of(timeline.keys[kind]);
    svg += fmt::format(R"(<path class="{}" d="{}"><title>{}</title></path>)", colour, path,
                       html_text(name));
    legend += fmt::format(R"(<span class="item"><span class="key {}"></span>{}</span>)", colour,
                          html_text(name));
  }
  svg += svg_box(0, inside, kTimelineWidth, 1, "tick");
  svg += svg_text(2, kTimelineHeight - 8, "start", "0");
  svg += svg_text(kTimelineWidth - 2, kTimelineHeight - 8, "end", time_text(whole_us));
  return fmt::format(
      "<h2>What ran when</h2>{}</svg><p class=\"legend dim\">{}</p><p class=\"dim\">From the first "
      "to the last kernel; a gap is time in which none ran.</p>",
      svg, legend);
}

}  // namespace octet::report
