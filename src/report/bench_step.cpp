// Times of a denoising step, its ops and its kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/nested.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const StepOp& op) {
  json = joined({OCTET_FIELDS(op, op, calls, ms, share),
                 OCTET_KNOWN_FIELDS(op, operations, bytes, tops, gb_per_s, ceiling_share)});
}

static void to_json(Json& json, const StepKernel& use) {
  json = joined({OCTET_FIELDS(use, layer, op), OCTET_KNOWN_FIELDS(use, kernel),
                 OCTET_FIELDS(use, calls, ms), OCTET_KNOWN_FIELDS(use, tops, ceiling_share)});
}

static void to_json(Json& json, const StepBranch& branch) {
  json = joined({OCTET_FIELDS(branch, name, tokens, ms), branch.steadiness,
                 OCTET_FIELDS(branch, watched_ms), OCTET_KNOWN_FIELDS(branch, int8_tops),
                 OCTET_FIELDS(branch, ops, kernels)});
}

static void to_json(Json& json, const StepSpan& span) {
  json = joined({OCTET_FIELDS(span, name), field("unit", span.unit >= 0 ? Json(span.unit) : Json()),
                 OCTET_KNOWN_FIELDS(span, bytes), OCTET_FIELDS(span, begin_ms, end_ms)});
}

static void to_json(Json& json, const StepTimeline& timeline) {
  json = Json();
  if (!timeline.is_known()) return;
  json = joined({OCTET_FIELDS(timeline, ms, wait_ms, copy_ms, copied_bytes),
                 OCTET_FIELDS(timeline, passes, runs, copies)});
}

namespace {

// The entries of all branches with the same `key`, added up, the longest first.
template <class Entry, class Key>
std::vector<Entry> summed(const std::vector<StepBranch>& branches,
                          std::vector<Entry> StepBranch::*entries, Key key) {
  std::vector<Entry> sums;
  for (const StepBranch& branch : branches) {
    for (const Entry& entry : branch.*entries) {
      Entry* const at = same_in(sums, entry, key);
      if (at == nullptr) continue;
      // Speeds and shares are means over the time.
      const double ms = at->ms + entry.ms;
      const auto mean = [&](double Entry::*value) {
        return ms > 0 ? ((*at).*value * at->ms + entry.*value * entry.ms) / ms : 0;
      };
      at->tops = mean(&Entry::tops);
      at->ceiling_share = mean(&Entry::ceiling_share);
      if constexpr (std::is_same_v<Entry, StepOp>) at->gb_per_s = mean(&StepOp::gb_per_s);
      at->calls += entry.calls;
      at->ms = ms;
    }
  }
  std::sort(sums.begin(), sums.end(), [](const Entry& a, const Entry& b) { return a.ms > b.ms; });
  return sums;
}

// Of the whole step: as steady as the less steady of its passes.
Steadiness steadiness_of(const StepBench& bench) {
  Steadiness all;
  for (const StepBranch& branch : bench.branches) {
    all.spread = std::max(all.spread, branch.steadiness.spread);
    all.reliable = all.reliable && branch.steadiness.reliable;
  }
  return all;
}

std::string branch_table(const StepBench& bench, const Speeds& speed) {
  Table table({"branch", "tokens", "ms", "INT8 " + speed.unit()}, 1);
  for (const StepBranch& branch : bench.branches) {
    table.add({branch.name, std::to_string(branch.tokens),
               marked(short_number(branch.ms), branch.steadiness), speed(branch.int8_tops)});
  }
  table.add({"both", "", marked(short_number(bench.ms()), steadiness_of(bench)), ""});
  table.add({"step", "", short_number(bench.step_ms), ""});
  return table.text();
}

std::string op_table(const StepBench& bench, const Speeds& speed, double watched_ms) {
  const auto ops = summed(bench.branches, &StepBranch::ops, &StepOp::op);
  Table table({"ops of a step", "", "share", "ms", "calls", speed.unit(), "GB/s", "of ceiling"}, 2);
  for (const StepOp& op : ops) {
    table.add({op.op, bar(op.ms / ops.front().ms), short_percent(op.ms / watched_ms),
               short_number(op.ms), op.calls > 0 ? std::to_string(op.calls) : "-", speed(op.tops),
               short_number(op.gb_per_s), short_percent(op.ceiling_share)});
  }
  return table.text();
}

std::string kernel_table(const StepBench& bench, const Speeds& speed) {
  const auto uses = summed(bench.branches, &StepBranch::kernels, [](const StepKernel& use) {
    return use.layer + '\n' + use.op + '\n' + use.kernel;
  });
  Table table({"linears of a step", "op", "kernel", "launches", "ms", speed.unit(), "of ceiling"},
              3);
  for (const StepKernel& use : uses) {
    table.add({use.layer, use.op, use.kernel.empty() ? "-" : use.kernel, std::to_string(use.calls),
               short_number(use.ms), speed(use.tops), short_percent(use.ceiling_share)});
  }
  return table.text();
}

std::string work_line(const StepBench& bench) {
  const std::string launches =
      bench.launches > 0 ? fmt::format("{} recorded launches, ", bench.launches) : "";
  return fmt::format("In a step: {}{} allocations, {} waits of the host.", launches,
                     bench.allocations, bench.waits);
}

// Nothing without a budget.
std::string budget_text(const StepBench& bench) {
  if (bench.max_memory == 0) return "";
  int layers = 0, here = 0;
  for (const PartPlace& place : bench.plan) {
    layers += place.layers;
    here += place.layers_on_device;
  }
  std::string text =
      fmt::format("{} may be used, {} of it by the device's context: {} of {} layers stay",
                  human_bytes(bench.max_memory), human_bytes(bench.context_bytes), here, layers);
  if (bench.streamed_bytes > 0) {
    text += fmt::format("; {} come in each step", human_bytes(bench.streamed_bytes));
  }
  const StepTimeline& timeline = bench.timeline;
  if (bench.streamed_bytes > 0 && timeline.is_known()) {
    text += fmt::format("\n(in the last one at {} GB/s, and {} of {} ms were waits for them)",
                        short_number(timeline.copy_gb_per_s()),
                        timeline.wait_ms > 0 ? short_number(timeline.wait_ms) : "0",
                        short_number(timeline.ms));
  }
  return text + "\n";
}

std::string ceiling_line(const StepBench& bench) {
  const auto in = [](const char* unit, double value) {
    return value > 0 ? fmt::format("{} {}", short_number(value), unit) : "unknown";
  };
  return fmt::format(
      "Ceilings, measured {} the steps: INT8 {}, bf16 {}, copying {}. An op's bytes: "
      "its\nmatrices, each counted once.",
      bench.max_memory > 0 ? "before" : "after", in("TOPS", bench.int8_ceiling_tops),
      in("TOPS", bench.bf16_ceiling_tops), in("GB/s", bench.copy_gb_per_s));
}

}  // namespace

std::string to_json(const StepBench& bench) try {
  const Json ceilings = {{"int8_tops", known(bench.int8_ceiling_tops)},
                         {"bf16_tops", known(bench.bf16_ceiling_tops)},
                         {"copy_gb_per_s", known(bench.copy_gb_per_s)}};
  return document(
      "octet.bench.step/1",
      joined({OCTET_FIELDS(bench, device, date, commit), field("dtype", bench.activations),
              OCTET_FIELDS(bench, linears, attention, threads, width, height, text_tokens, layers,
                           parameters, weight_bytes, peak_bytes),
              OCTET_KNOWN_FIELDS(bench, max_memory, context_bytes),
              OCTET_FIELDS(bench, plan, streamed_bytes, timeline, steps), field("ms", bench.ms()),
              OCTET_FIELDS(bench, step_ms), OCTET_KNOWN_FIELDS(bench, launches),
              OCTET_FIELDS(bench, allocations, waits), field("ceilings", ceilings),
              OCTET_FIELDS(bench, power, branches)}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const StepBench& bench) try {
  constexpr double kNoticeable = 0.03;
  double watched_ms = 0;
  for (const StepBranch& branch : bench.branches) watched_ms += branch.watched_ms;
  Speeds speed;
  for (const StepBranch& branch : bench.branches) {
    for (const StepOp& op : branch.ops) speed.see(op.tops);
  }
  const bool is_disturbed = std::abs(watched_ms / bench.ms() - 1) > kNoticeable;
  return fmt::format(
      "{}\n{} x {} pixels, {} text tokens, layers: {}, linears {}, activations {}\n"
      "{:.2f} billion random weights in {}{}, at most {} in use during a step\n{}\n"
      "{}\n{}\n{}\nMedians of {} step{}; a step is one pass of each network, guidance and update. "
      "gemm: native\nINT8; matmul: not quantized. {}\n{}\n{}\n{}{}",
      bench.device, bench.width, bench.height, bench.text_tokens, bench.layers,
      word_of(bench.linears), word_of(bench.activations),
      static_cast<double>(bench.parameters) * 1e-9, human_bytes(bench.weight_bytes),
      bench.streamed_bytes > 0 ? " here and others with the host" : "",
      human_bytes(bench.peak_bytes), budget_text(bench), branch_table(bench, speed),
      op_table(bench, speed, watched_ms), kernel_table(bench, speed), bench.steps,
      bench.steps == 1 ? "" : "s",
      is_disturbed ? fmt::format("Ops were timed in separate passes, at {} ms per step.",
                                 short_number(watched_ms))
                   : "Ops were timed in separate passes.",
      work_line(bench), ceiling_line(bench), power_line(bench.power),
      unreliable_line(bench.branches));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
