// An audit as JSON, and as text for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "octet/version.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const AuditShare& each) {
  json = joined(
      {field("class", each.key), field("name", each.work), OCTET_FIELDS(each, calls, us, share)});
}

static void to_json(Json& json, const AuditLinear& each) {
  json = joined({OCTET_KNOWN_FIELDS(each, layer, m, n, k), OCTET_FIELDS(each, verdict, how),
                 OCTET_KNOWN_FIELDS(each, kernel), field("class", known(each.gemm_key)),
                 OCTET_FIELDS(each, calls, gemm_us, dequantize_us, quantize_us)});
}

static void to_json(Json& json, const AuditKernel& each) {
  json = joined({OCTET_FIELDS(each, name), OCTET_KNOWN_FIELDS(each, op), field("class", each.key),
                 OCTET_KNOWN_FIELDS(each, library, evidence, shapes),
                 OCTET_FIELDS(each, calls, us, share)});
}

static void to_json(Json& json, const AuditPair& each) {
  json = joined({OCTET_FIELDS(each, text, certain, stored, dims, floating),
                 OCTET_KNOWN_FIELDS(each, op, n, k), OCTET_FIELDS(each, calls),
                 OCTET_KNOWN_FIELDS(each, layers)});
}

static void to_json(Json& json, const AuditModel& each) {
  json = joined({OCTET_FIELDS(each, name, verdict, headline), field("calls", each.linears),
                 OCTET_FIELDS(each, native, fake, weight_only, floating, unclear)});
}

OCTET_JSON(AuditReport::LogLine, line, meaning, count)

static void to_json(Json& json, const AuditTimeline& timeline) {
  json = nullptr;
  if (timeline.us.empty()) return;
  json = joined({OCTET_FIELDS(timeline, start_us, piece_us), field("classes", timeline.keys),
                 OCTET_FIELDS(timeline, us)});
}

static void to_json(Json& json, const AuditSaving& saving) {
  json = joined({OCTET_FIELDS(saving, linear_us, linear_share),
                 OCTET_KNOWN_FIELDS(saving, at_most, gemm_ratio, expected, source)});
}

namespace {

constexpr size_t kMostName = 72, kMostLayer = 34;

size_t first_byte_of(const std::string& text, size_t at) {
  while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) ++at;
  return at;
}

// Of names the begin tells most, of layers the end.
std::string name_begin(const std::string& name, size_t most) {
  const std::string text = printable(name);
  if (text.size() <= most) return text;
  return text.substr(0, first_byte_of(text, most)) + "…";
}

std::string layer_end(const std::string& layer, size_t most) {
  const std::string text = printable(layer);
  if (text.size() <= most) return text;
  return "…" + text.substr(first_byte_of(text, text.size() - most));
}

std::string time_of(double us) { return short_number(us / 1000); }

std::string place_of(const AuditLinear& linear, bool whole) {
  if (!linear.layer.empty())
    return whole ? printable(linear.layer) : layer_end(linear.layer, kMostLayer);
  if (linear.n <= 0 && linear.k <= 0) return "unknown";
  const auto extent = [](int64_t value) { return value > 0 ? std::to_string(value) : "?"; };
  return fmt::format("{} x {} x {}", extent(linear.m), extent(linear.n), extent(linear.k));
}

// "PyTorch profiler trace, NVIDIA H200: 412 ms of kernels within 431 ms"
std::string source_line(const AuditReport& report) {
  std::string line;
  std::set<std::string> named;
  for (const std::string& format : report.formats) {
    if (named.insert(format).second) line += (line.empty() ? "" : " and ") + printable(format);
  }
  if (report.files.size() > 1) line += fmt::format(" ({} files)", report.files.size());
  if (!report.device.empty()) line += ", " + printable(report.device);
  if (report.total_us > 0) {
    line += fmt::format(": {} ms of {}", time_of(report.total_us),
                        report.on_host ? "ops on a CPU" : "kernels");
    if (report.wall_us > 0) line += fmt::format(" within {} ms", time_of(report.wall_us));
  }
  return line + "\n";
}

// One line for each model where there are several.
std::string verdict_lines(const AuditReport& report) {
  if (report.models.empty()) return printable(report.headline) + "\n";
  std::string text;
  for (const AuditModel& model : report.models) {
    text += fmt::format("{}: {}\n", printable(model.name), printable(model.headline));
  }
  return text;
}

// What decided it, so that a reader can object.
std::string pair_lines(const AuditReport& report) {
  constexpr size_t kMostPairs = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kMostPairs, report.pairs.size()); ++i) {
    const AuditPair& pair = report.pairs[i];
    text += fmt::format("  {}{}\n", pair.certain ? "" : "perhaps ", printable(pair.text));
  }
  if (report.pairs.size() > kMostPairs) {
    text += fmt::format("  ... and {} more, in --json\n", report.pairs.size() - kMostPairs);
  }
  return text;
}

std::string class_table(const AuditReport& report) {
  if (report.classes.empty()) return "";
  double most = 0;
  for (const AuditShare& each : report.classes) most = std::max(most, each.share);
  Table table({"class", "", "share", "ms", "calls"}, 2);
  for (const AuditShare& each : report.classes) {
    table.add({printable(each.work), most > 0 ? bar(each.share / most) : "",
               short_percent(each.share), time_of(each.us), std::to_string(each.calls)});
  }
  return "\n" + table.text();
}

// Layers come by the time that they lost: all that are not native, the worst first.
std::string offender_table(const AuditReport& report, bool all) {
  constexpr size_t kWorst = 10;
  std::vector<const AuditLinear*> offenders;
  for (const AuditLinear& each : report.layers) {
    const bool is_native = each.verdict == AuditVerdict::native_int8 ||
                           each.verdict == AuditVerdict::native_fp8 ||
                           each.verdict == AuditVerdict::native_four_bit;
    if (!is_native) offenders.push_back(&each);
  }
  if (offenders.empty()) return "";
  const size_t shown = all ? offenders.size() : std::min(kWorst, offenders.size());
  const bool is_blamed = report.fake + report.weight_only > 0;
  Table table({is_blamed ? "worst offenders" : "largest linears", "ran as", "calls", "GEMM ms",
               "dequantize ms", "quantize ms"},
              2);
  std::vector<std::string> ways;
  for (size_t i = 0; i < shown; ++i) {
    const AuditLinear& each = *offenders[i];
    table.add({place_of(each, all), title_of(each.verdict), std::to_string(each.calls),
               time_of(each.gemm_us), time_of(each.dequantize_us), time_of(each.quantize_us)});
    const std::string way = fmt::format("{}: {}", title_of(each.verdict), printable(each.how));
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  }
  std::string text = "\n" + table.text();
  if (offenders.size() > shown) {
    text += fmt::format("... and {} more; -v shows all\n", offenders.size() - shown);
  }
  for (const std::string& way : ways) text += way + "\n";
  return text;
}

std::string unknown_table(const AuditReport& report) {
  if (report.unknown.empty()) return "";
  constexpr size_t kMostRows = 20;
  Table table({"unknown kernels", "share", "ms", "calls"}, 1);
  for (size_t i = 0; i < std::min(kMostRows, report.unknown.size()); ++i) {
    const AuditKernel& each = report.unknown[i];
    table.add({name_begin(each.name, kMostName), short_percent(each.share), time_of(each.us),
               std::to_string(each.calls)});
  }
  std::string text = "\n" + table.text();
  if (report.unknown.size() > kMostRows) {
    text += fmt::format("... and {} more, in --json\n", report.unknown.size() - kMostRows);
  }
  return text;
}

std::string log_lines(const AuditReport& report) {
  if (report.log.empty()) return "";
  std::string text = "\nThe log says:\n";
  for (const AuditReport::LogLine& each : report.log) {
    const std::string times = each.count > 1 ? fmt::format(" ({} times)", each.count) : "";
    text += fmt::format("  {}{}\n    {}\n", printable(each.line), times, printable(each.meaning));
  }
  return text;
}

std::string saving_text(const AuditReport& report) {
  const AuditSaving& saving = report.saving;
  if (!(saving.linear_us > 0)) return "";
  std::string text = fmt::format(
      "\nNative INT8 could save: {} of the time went into linears that did not run in INT8",
      short_percent(saving.linear_share));
  if (saving.at_most > 0) {
    text += fmt::format(
        ", so the run\nwould be at most {:.2f} times as fast if they took no time (Amdahl)",
        saving.at_most);
  }
  text += '.';
  if (saving.expected > 0) {
    text +=
        fmt::format(" Expect {:.2f} times: native INT8 is\n{:.2f} times as fast as what ran ({}).",
                    saving.expected, saving.gemm_ratio, printable(saving.source));
  }
  return text + "\n";
}

}  // namespace

std::string to_json(const AuditReport& report) try {
  const Json linears = joined({field("calls", report.linears),
                               OCTET_FIELDS(report, native, fake, weight_only, floating, unclear)});
  DocumentText text("octet.audit/1");
  text.add(joined({field("version", version()), field("commit", commit()),
                   OCTET_FIELDS(report, files, formats), OCTET_KNOWN_FIELDS(report, device),
                   OCTET_FIELDS(report, on_host, verdict, headline, pairs, models, notes),
                   field("linears", linears), OCTET_FIELDS(report, total_us),
                   OCTET_KNOWN_FIELDS(report, wall_us), OCTET_FIELDS(report, classes)}));
  text.add_list("layers", report.layers);
  text.add_list("kernels", report.kernels);
  text.add_list("unknown", report.unknown);
  text.add(OCTET_FIELDS(report, saving, timeline, log));
  return text.take();
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const AuditReport& report, Detail detail) try {
  std::string text = verdict_lines(report);
  if (detail == Detail::brief) return text;
  text += pair_lines(report) + source_line(report) + class_table(report) +
          offender_table(report, detail == Detail::full);
  text += unknown_table(report) + log_lines(report) + saving_text(report);
  if (!report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes) text += "Note: " + printable(note) + "\n";
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
