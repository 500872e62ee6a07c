// The error along the steps of a comparison, drawn as SVG.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/certificate.h"

namespace octet::report {
namespace {

constexpr double kPlotWidth = 640, kPlotHeight = 240, kPlotLeft = 48, kPlotRight = 12,
                 kPlotTop = 12, kPlotBottom = 40;

// From decibels and steps to places.
struct Axes {
  double low = 0, high = 0;
  size_t steps = 0;

  double x(size_t step) const {
    const double inside = kPlotWidth - kPlotLeft - kPlotRight;
    return steps < 2
               ? kPlotLeft + inside / 2
               : kPlotLeft + inside * static_cast<double>(step) / static_cast<double>(steps - 1);
  }
  double y(double decibels) const {
    const double inside = kPlotHeight - kPlotTop - kPlotBottom;
    return kPlotTop + inside * (high - decibels) / (high - low);
  }
};

bool has_interval(const Statistic& statistic) { return std::isfinite(statistic.low); }

std::string point(double x, double y) { return fmt::format("{:.1f},{:.1f} ", x, y); }

}  // namespace

std::string snr_plot(const CompareReport& report) {
  Axes axes{.low = 1e9, .high = -1e9, .steps = report.steps.size()};
  for (const DifferenceStatistics& step : report.steps) {
    const Statistic& snr = step.snr_db;
    if (snr.count == 0) return "";
    axes.low = std::min(axes.low, has_interval(snr) ? snr.low : snr.mean);
    axes.high = std::max(axes.high, has_interval(snr) ? snr.high : snr.mean);
  }
  if (report.steps.empty()) return "";
  constexpr double kGrid = 5;  // decibels
  axes.low = kGrid * std::floor((axes.low - 1) / kGrid);
  axes.high = kGrid * std::ceil((axes.high + 1) / kGrid);
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 {} {}" role="img" aria-label="SNR of the latents after each step, from )"
      R"({:.1f} dB after the first to {:.1f} dB after the last">)",
      kPlotWidth, kPlotHeight, report.steps.front().snr_db.mean, report.steps.back().snr_db.mean);
  const double every = kGrid * std::ceil((axes.high - axes.low) / kGrid / 6);
  for (double value = axes.low; value <= axes.high + 0.1; value += every) {
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)"
                       R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{:.0f}</text>)",
                       kPlotLeft, kPlotWidth - kPlotRight, axes.y(value), axes.y(value),
                       kPlotLeft - 8, axes.y(value) + 4, value);
  }
  const size_t label_every = (axes.steps + 11) / 12;
  for (size_t i = 0; i < axes.steps; i += label_every) {
    svg += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)",
                       axes.x(i), kPlotHeight - kPlotBottom + 18, i + 1);
  }
  svg += fmt::format(R"(<text class="tick" x="{}" y="{}" text-anchor="middle">step</text>)",
                     (kPlotLeft + kPlotWidth - kPlotRight) / 2, kPlotHeight - 4);
  std::string line, upper, lower;
  for (size_t i = 0; i < axes.steps; ++i) {
    const Statistic& snr = report.steps[i].snr_db;
    line += point(axes.x(i), axes.y(snr.mean));
    if (!has_interval(snr)) continue;
    upper += point(axes.x(i), axes.y(snr.high));
    lower.insert(0, point(axes.x(i), axes.y(snr.low)));
  }
  if (!upper.empty()) svg += fmt::format(R"(<polygon class="band" points="{}"/>)", upper + lower);
  svg += fmt::format(R"(<polyline class="line" points="{}"/>)", line);
  for (size_t i = 0; i < axes.steps; ++i) {
    const Statistic& snr = report.steps[i].snr_db;
    svg += fmt::format(R"(<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="3">)"
                       "<title>step {}: {:.2f} dB</title></circle>",
                       axes.x(i), axes.y(snr.mean), i + 1, snr.mean);
  }
  return svg + "</svg>";
}

std::string name_of(const ComparedImage& image, const CompareReport& report) {
  const std::string& caption = report.captions[image.caption].name;
  return report.seeded ? fmt::format("{}, seed {}", caption, image.seed) : caption;
}

}  // namespace octet::report
