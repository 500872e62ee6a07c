// An audit as one HTML page without scripts and without other files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "formats/boundary.h"
#include "octet/tools/audit.h"
#include "octet/version.h"
#include "report/page.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

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

// A page stays one that browsers like; JSON has all of it.
constexpr size_t kMostPageRows = 1000;
// Pairs that decided, below the verdict.
constexpr size_t kMostPagePairs = 8;

constexpr const char* kAuditStyle = R"(
.verdict strong{display:block;font-size:2rem;letter-spacing:0;line-height:1.2}
.verdict p{margin:.3rem 0 0;color:var(--ink);font-size:1.1rem}.part{color:#b06a00}
@media(prefers-color-scheme:dark){.part{color:#f0b45a}}
th[scope=col],td.shape{white-space:nowrap}td.number,th.number{text-align:right;white-space:nowrap}
td.bars{width:30%;min-width:9rem}.bar{height:.8rem;border-radius:2px;min-width:2px}
.key{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;vertical-align:-.08rem;
margin-right:.35rem}.legend span.item{display:inline-block;margin-right:1.1rem}
summary{cursor:pointer;margin:.6rem 0}svg{max-width:none}
svg.timeline{height:10rem;display:block}.ends{display:flex;justify-content:space-between}
@media(max-width:40rem){.verdict strong{font-size:1.5rem}td.bars{width:15%;min-width:2.5rem}
th[scope=col]{white-space:normal}.legend span.item{margin-right:.7rem}
.wide thead{display:none}.wide tr,.wide td{display:block}
.wide tr{border-bottom:1px solid var(--edge);padding:.5rem 0}.wide td{border:0;padding:.05rem 0}
.wide td.number{display:inline-block;margin-right:1rem}.wide td::before{color:var(--dim)}
.wide td.number:empty,.wide td:empty{display:none}}
)";

// Wide tables: on a narrow page each row is a card, and numbers have their heading before them.
using Headings = std::array<const char*, 8>;
constexpr Headings kLinearHeadings = {"layer",  "m x n x k", "how it ran",     "kernel",
                                      "#calls", "#GEMM ms",  "#dequantize ms", "#quantize ms"};
constexpr Headings kKernelHeadings = {"kernel or op", "class",  "library", "evidence",
                                      "op or shapes", "#calls", "#ms",     "#share"};

std::string wide_table(const char* kind, const Headings& headings, const std::string& rows) {
  return fmt::format(R"(<div class="wide {}">{}</div>)", kind,
                     html_table({headings.begin(), headings.end()}, rows));
}

std::string card_style(const char* kind, const Headings& headings) {
  std::string style;
  for (size_t i = 0; i < headings.size(); ++i) {
    if (headings[i][0] != '#') continue;
    style += fmt::format(".{} td:nth-child({})::before{{content:\"{} \"}}\n", kind, i + 1,
                         headings[i] + 1);
  }
  return fmt::format("@media(max-width:40rem){{\n{}}}\n", style);
}

// Each class of work has a colour: the name of the style's class for it, and the rules.
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

std::string verdict_class(AuditVerdict verdict) {
  switch (verdict) {
    case AuditVerdict::native_int8:
    case AuditVerdict::native_fp8:
    case AuditVerdict::native_four_bit: return "pass";
    case AuditVerdict::fallback:
    case AuditVerdict::fake_int8:
    case AuditVerdict::fake_fp8:
    case AuditVerdict::fake_four_bit: return "fail";
    default: return "part";
  }
}

// "12.3", "0.042"; nothing for no time.
std::string milliseconds(double us) { return us > 0 ? short_number(us / 1000) : ""; }

std::string percent_of(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string code_text(const std::string& text) {
  return text.empty() ? "" : fmt::format("<code>{}</code>", html_name(text));
}

std::string number_cell(const std::string& text) {
  return fmt::format(R"(<td class="number">{}</td>)", text);
}

std::string and_more(size_t count, size_t shown) {
  if (count <= shown) return "";
  return fmt::format(R"(<p class="dim">... and {} more, in the JSON output.</p>)", count - shown);
}

// One line for each model where there are several.
std::string verdict_text(const AuditReport& report) {
  std::string text;
  for (const AuditModel& model : report.models) {
    text += fmt::format("<p>{}: {}</p>", html_name(model.name), html_text(model.headline));
  }
  return text.empty() ? fmt::format("<p>{}</p>", html_text(report.headline)) : text;
}

// What decided, below the verdict: codes that were widened, and the product after them.
std::string pair_items(const AuditReport& report) {
  if (report.pairs.empty()) return "";
  std::string items;
  const size_t shown = std::min(kMostPagePairs, report.pairs.size());
  for (size_t i = 0; i < shown; ++i) {
    items += fmt::format("<li>{}{}</li>", report.pairs[i].certain ? "" : "perhaps ",
                         html_name(report.pairs[i].text));
  }
  return fmt::format("<ul>{}</ul>{}", items, and_more(report.pairs.size(), shown));
}

std::string class_bars(const AuditReport& report) {
  double most = 0;
  for (const AuditShare& each : report.classes) most = std::max(most, each.share);
  std::string rows;
  for (const AuditShare& each : report.classes) {
    rows += fmt::format(
        R"(<tr><th scope="row"><span class="key {0}"></span>{1}</th><td class="bars">)"
        R"(<div class="bar {0}" style="width:{2:.1f}%"></div></td>)",
        colour_of(each.key), html_text(each.work), most > 0 ? 100 * each.share / most : 0.0);
    rows += number_cell(percent_of(each.share)) + number_cell(milliseconds(each.us)) +
            number_cell(std::to_string(each.calls)) + "</tr>";
  }
  return html_table({"class", "", "#share", "#ms", "#calls"}, rows);
}

constexpr double kTimelineWidth = 960, kTimelineHeight = 144;

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

// What ran when, as stacked bars with a legend; empty for a report without a timeline.
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
  const double inside = kTimelineHeight;
  const double width = kTimelineWidth / static_cast<double>(pieces);
  // As wide as the page and as high everywhere: the text is outside, or it would be stretched.
  std::string svg = fmt::format(
      R"(<svg class="timeline" preserveAspectRatio="none" viewBox="0 0 {} {}" role="img" )"
      R"(aria-label="{}">)",
      kTimelineWidth, kTimelineHeight,
      html_text(fmt::format("Classes of work over {}", time_text(whole_us))));
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
  return fmt::format(
      "<h2>What ran when</h2>{}</svg><div class=\"ends dim\"><span>0</span><span>{}</span></div>"
      "<p class=\"legend dim\">{}</p><p class=\"dim\">From the first to the last kernel; a gap is "
      "time in which none ran.</p>",
      svg, time_text(whole_us), legend);
}

std::string linear_shape(const AuditLinear& linear) {
  if (linear.n <= 0 && linear.k <= 0) return "";
  const auto extent = [](int64_t value) { return value > 0 ? std::to_string(value) : "?"; };
  return fmt::format("{} x {} x {}", extent(linear.m), extent(linear.n), extent(linear.k));
}

std::string linear_rows(const std::vector<AuditLinear>& linears, size_t most) {
  std::string rows;
  for (size_t i = 0; i < std::min(most, linears.size()); ++i) {
    const AuditLinear& each = linears[i];
    rows += fmt::format(
        R"(<tr><td>{}</td><td class="shape">{}</td><td><span class="{}">{}</span><br>{}</td>)"
        "<td>{}</td>",
        code_text(each.layer), linear_shape(each), verdict_class(each.verdict),
        title_of(each.verdict), html_text(each.how), code_text(each.kernel));
    rows += number_cell(std::to_string(each.calls)) + number_cell(milliseconds(each.gemm_us)) +
            number_cell(milliseconds(each.dequantize_us)) +
            number_cell(milliseconds(each.quantize_us)) + "</tr>";
  }
  return wide_table("linears", kLinearHeadings, rows);
}

std::string linear_sections(const AuditReport& report) {
  if (report.layers.empty()) return "";
  constexpr size_t kWorst = 10;
  std::string page = "<h2>Where the time of linears is lost</h2>";
  page += linear_rows(report.layers, kWorst);
  if (report.layers.size() <= kWorst) return page;
  return page + fmt::format("<details><summary>All linears ({})</summary>{}{}</details>",
                            report.layers.size(), linear_rows(report.layers, kMostPageRows),
                            and_more(report.layers.size(), kMostPageRows));
}

std::string audited_kernels(const std::vector<AuditKernel>& kernels) {
  std::string rows;
  for (size_t i = 0; i < std::min(kMostPageRows, kernels.size()); ++i) {
    const AuditKernel& each = kernels[i];
    rows += fmt::format(
        R"(<tr><td>{}</td><td><span class="key {}"></span>{}</td><td>{}</td><td>{}</td>)"
        "<td>{}</td>",
        code_text(each.name), colour_of(each.key), html_text(each.work), html_text(each.library),
        html_text(each.evidence), code_text(each.shapes.empty() ? each.op : each.shapes));
    rows += number_cell(std::to_string(each.calls)) + number_cell(milliseconds(each.us)) +
            number_cell(percent_of(each.share)) + "</tr>";
  }
  return wide_table("kernels", kKernelHeadings, rows) + and_more(kernels.size(), kMostPageRows);
}

std::string kernel_sections(const AuditReport& report) {
  std::string page = "<h2>Unknown kernels</h2>";
  if (report.unknown.empty()) {
    page += "<p>None: every kernel has a known class.</p>";
  } else {
    page += "<p>It is not known what these do. They are counted as a separate class.</p>" +
            audited_kernels(report.unknown);
  }
  if (report.kernels.empty()) return page;
  return page + fmt::format("<h2>All kernels</h2><details><summary>{} names</summary>{}</details>",
                            report.kernels.size(), audited_kernels(report.kernels));
}

std::string saving_section(const AuditReport& report) {
  const AuditSaving& saving = report.saving;
  if (!(saving.linear_us > 0)) return "";
  std::string page = fmt::format(
      "<h2>What native INT8 could save</h2><p>{} of the time went into linears that did not run in "
      "INT8, with their dequantization and quantization.",
      percent_of(saving.linear_share));
  if (saving.at_most > 0) {
    page += fmt::format(
        " If they took no time at all, the run would be <strong>{:.2f} times</strong> as fast: at "
        "most that, whatever the kernel (Amdahl's law).",
        saving.at_most);
  }
  if (saving.expected > 0) {
    page += fmt::format(
        " Native INT8 is {:.2f} times as fast as what ran ({}), so expect about <strong>{:.2f} "
        "times</strong>.",
        saving.gemm_ratio, html_text(saving.source), saving.expected);
  }
  return page + "</p>";
}

std::string log_section(const AuditReport& report) {
  if (report.log.empty()) return "";
  std::string rows;
  for (const AuditReport::LogLine& each : report.log) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td>{}</tr>", code_text(each.line),
                        html_text(each.meaning), number_cell(std::to_string(each.count)));
  }
  return "<h2>What the log says</h2>" + html_table({"line", "what it means", "#times"}, rows);
}

std::string source_rows(const AuditReport& report) {
  const auto row = [](const char* name, const std::string& value) {
    return value.empty() ? "" : html_row(name, value);
  };
  std::string rows;
  for (size_t i = 0; i < report.files.size(); ++i) {
    const std::string format = i < report.formats.size() ? ", " + report.formats[i] : "";
    rows += row("File", code_text(report.files[i]) + html_text(format));
  }
  rows += row("Device", html_text(report.device));
  rows += row("Linears", fmt::format("{} calls: {} native, {} fake, {} with only quantized "
                                     "weights, {} in floating point, {} unclear",
                                     report.linears, report.native, report.fake, report.weight_only,
                                     report.floating, report.unclear));
  rows += row(report.on_host ? "Ops, ms" : "Kernels, ms", milliseconds(report.total_us));
  rows += row("From first to last, ms", milliseconds(report.wall_us));
  rows += row("Program", html_text(fmt::format("Octet {} ({})", version(), commit())));
  return R"(<h2>What was read</h2><div class="scroll"><table><tbody>)" + rows +
         "</tbody></table></div>";
}

constexpr const char* kHowToRead =
    "<h2>How to read this</h2><p>An INT8 linear is native if int8 codes are multiplied by int8 "
    "codes on integer units. It is fake if codes become bf16, fp16 or fp32 first and a "
    "floating-point GEMM does the work: the result is that of INT8, but not the speed or the "
    "units. Weights that are widened inside the GEMM save memory but run at the speed of floating "
    "point.</p><p>What a kernel does is taken from the types and shapes that the trace recorded; "
    "where it has none, from the kernel's name; and from instruction counts where Nsight Compute "
    "gives them. Times are those of the trace.</p>";

}  // namespace

std::string audit_page(const AuditReport& report) try {
  std::string page =
      page_head(std::string("Octet audit: ") + title_of(report.verdict),
                kAuditStyle + colour_style() + card_style("linears", kLinearHeadings) +
                    card_style("kernels", kKernelHeadings));
  page += fmt::format(
      R"(<main><h1>Audit of a profile</h1><div class="verdict {}"><strong>{}</strong>{}{})"
      "</div>",
      verdict_class(report.verdict), title_of(report.verdict), verdict_text(report),
      pair_items(report));
  if (!report.notes.empty()) page += fmt::format("<ul>{}</ul>", html_items(report.notes));
  if (!report.classes.empty()) page += "<h2>Time by class</h2>" + class_bars(report);
  page += timeline_section(report);
  page += linear_sections(report) + saving_section(report) + kernel_sections(report);
  page += log_section(report) + source_rows(report) + kHowToRead;
  return page + "</main></body></html>\n";
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
