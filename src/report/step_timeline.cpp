// A step whose layers come while others run, drawn over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/boundary.h"
#include "octet/tools/bench_step.h"
#include "report/page.h"
#include "report/text.h"

namespace octet {
namespace {

using report::svg_box, report::svg_text;

constexpr double kMargin = 16, kNames = 84, kWidth = 1000;
constexpr double kTop = 62, kLane = 30, kGap = 10;
constexpr int kLanes = 3;

constexpr const char* kStyle = R"(<style>
text{font:12px system-ui,sans-serif;fill:#1c2430}
.title{font-size:15px;font-weight:600}.dim{fill:#5d6875}.name{fill:#fff}
.paper{fill:#fbfaf7}.lane{fill:#ece9e1}.wait{fill:#e9b5b0}.grid{fill:#cfcabd}
.pass{fill:#8a94a3}.run{fill:#1c7c4a}.copy{fill:#2b6cb0}
rect.pass,rect.run,rect.copy{stroke:#fbfaf7;stroke-width:.6}
@media(prefers-color-scheme:dark){text{fill:#e6e8eb}.dim{fill:#9aa4b0}
.paper{fill:#14171c}.lane{fill:#2a3038}.wait{fill:#7a3a35}.grid{fill:#3a424d}
.pass{fill:#5d6875}.run{fill:#3fae77}.copy{fill:#5a9bdc}
rect.pass,rect.run,rect.copy{stroke:#14171c}}
</style>)";

// A round number of milliseconds between two ticks, of which there are about ten.
double tick_of(double ms) {
  const double rough = ms / 10, unit = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * unit >= rough) return factor * unit;
  }
  return 10 * unit;
}

class Drawing {
 public:
  explicit Drawing(const StepTimeline& timeline) : timeline_(timeline) {}

  std::string axis() const {
    std::string svg;
    const double bottom = top_of(kLanes);
    for (double ms = 0; ms <= timeline_.ms; ms += tick_of(timeline_.ms)) {
      svg += svg_box(x(ms), kTop, 0.5, bottom - kTop, "grid");
      svg += svg_text(x(ms), bottom + 10, "middle", fmt::format("{:g}", ms), "dim");
    }
    return svg + svg_text(x(timeline_.ms), bottom + 28, "end", "ms", "dim") +
           svg_text(kMargin, bottom + 28, "start",
                    "Green: layers run. Red: the next one has not arrived.", "dim");
  }

  std::string names(int lane, const std::vector<StepSpan>& spans) const {
    std::string svg;
    for (const StepSpan& span : spans) {
      svg += svg_text(x((span.begin_ms + span.end_ms) / 2), top_of(lane) + 19, "middle", span.name,
                      "name");
    }
    return svg;
  }

  std::string lane(int lane, std::string_view name, std::string_view background) const {
    return svg_text(kMargin, top_of(lane) + 19, "start", name, "") +
           svg_box(x(0), top_of(lane), x(timeline_.ms) - x(0), kLane, background);
  }

  std::string spans(int lane, std::string_view kind, const std::vector<StepSpan>& spans) const {
    std::string svg;
    for (const StepSpan& span : spans) {
      const double begin = std::clamp(span.begin_ms, 0.0, timeline_.ms);
      const double end = std::clamp(span.end_ms, 0.0, timeline_.ms);
      std::string note = span.name;
      if (span.unit >= 0)
        note += fmt::format(", {} {}", span.bytes > 0 ? "layer" : "from layer", span.unit);
      if (span.bytes > 0) note += fmt::format(", {}", human_bytes(span.bytes));
      note += fmt::format(": {:.2f} to {:.2f} ms", span.begin_ms, span.end_ms);
      svg += svg_box(x(begin), top_of(lane), x(end) - x(begin), kLane, kind, note);
    }
    return svg + "\n";
  }

 private:
  static double top_of(int lane) { return kTop + lane * (kLane + kGap); }
  double x(double ms) const { return kMargin + kNames + kWidth * ms / timeline_.ms; }

  const StepTimeline& timeline_;
};

}  // namespace

std::string timeline_svg(const StepBench& bench) try {
  const StepTimeline& timeline = bench.timeline;
  check(timeline.is_known(), "timeline: none was taken; it takes a budget, `max_memory`");
  const double width = 2 * kMargin + kNames + kWidth;
  const double height = kTop + kLanes * (kLane + kGap) + 40;
  const std::string title =
      fmt::format("A step at {} x {} pixels within {}: {} ms", bench.width, bench.height,
                  human_bytes(bench.max_memory), report::short_number(timeline.ms));
  const std::string came =
      timeline.copies.empty()
          ? "all layers stay"
          : fmt::format("layers of {} came at {} GB/s, and the device waited for {} ms",
                        human_bytes(timeline.copied_bytes),
                        report::short_number(timeline.copy_gb_per_s()),
                        timeline.wait_ms > 0 ? report::short_number(timeline.wait_ms) : "0");
  const std::string subtitle =
      fmt::format("Measured on {}, {}: {}", bench.device, bench.date.substr(0, 10), came);
  const Drawing drawing(timeline);
  return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" )"
                     R"(width="{0:.0f}" height="{1:.0f}" role="img" aria-label="{2}">{3}\n)"
                     R"(<rect class="paper" width="100%" height="100%"/>)",
                     width, height, report::html_text(title + ". " + subtitle), kStyle) +
         svg_text(kMargin, 24, "start", title, "title") +
         svg_text(kMargin, 43, "start", subtitle, "dim") + "\n" +
         drawing.lane(0, "passes", "lane") + drawing.spans(0, "pass", timeline.passes) +
         drawing.names(0, timeline.passes) + drawing.lane(1, "layers", "wait") +
         drawing.spans(1, "run", timeline.runs) + drawing.lane(2, "copies", "lane") +
         drawing.spans(2, "copy", timeline.copies) + drawing.axis() + "</svg>\n";
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
