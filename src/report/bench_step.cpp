// Times of a denoising step, its ops and its kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

Json json_of(const StepOp& op) {
  return {{"op", op.op},
          {"calls", op.calls},
          {"ms", op.ms},
          {"share", op.share},
          {"operations", known(op.operations)},
          {"bytes", known(op.bytes)},
          {"tops", known(op.tops)},
          {"gb_per_s", known(op.gb_per_s)},
          {"ceiling_share", known(op.ceiling_share)}};
}

Json json_of(const StepKernel& use) {
  return {{"layer", use.layer},
          {"op", use.op},
          {"kernel", known(use.kernel)},
          {"calls", use.calls},
          {"ms", use.ms},
          {"tops", known(use.tops)},
          {"ceiling_share", known(use.ceiling_share)}};
}

Json json_of(const StepBranch& branch) {
  Json json = {{"name", branch.name}, {"tokens", branch.tokens}, {"ms", branch.ms}};
  add_steadiness(json, branch.steadiness);
  json.update({{"watched_ms", branch.watched_ms},
               {"int8_tops", known(branch.int8_tops)},
               {"ops", list_of(branch.ops, json_of)},
               {"kernels", list_of(branch.kernels, json_of)}});
  return json;
}

// The entries of all branches with the same `key`, added up, the longest first.
template <class Entry, class Key>
std::vector<Entry> summed(const std::vector<StepBranch>& branches,
                          std::vector<Entry> StepBranch::*entries, Key key) {
  std::vector<Entry> sums;
  for (const StepBranch& branch : branches) {
    for (const Entry& entry : branch.*entries) {
      const auto at = std::find_if(sums.begin(), sums.end(),
                                   [&](const Entry& sum) { return key(sum) == key(entry); });
      if (at == sums.end()) {
        sums.push_back(entry);
        continue;
      }
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

// Speeds in the unit that suits the device.
class Speeds {
 public:
  explicit Speeds(const StepBench& bench) {
    constexpr double kLargeTops = 10;
    for (const StepBranch& branch : bench.branches) {
      for (const StepOp& op : branch.ops) large_ = large_ || op.tops >= kLargeTops;
    }
  }
  std::string unit() const { return large_ ? "TOPS" : "GOPS"; }
  std::string operator()(double tops) const { return short_number(large_ ? tops : tops * 1e3); }

 private:
  bool large_ = false;
};

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
  const auto ops = summed(bench.branches, &StepBranch::ops, [](const StepOp& op) { return op.op; });
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

std::string ceiling_line(const StepBench& bench) {
  const auto in = [](const char* unit, double value) {
    return value > 0 ? fmt::format("{} {}", short_number(value), unit) : "unknown";
  };
  return fmt::format(
      "Ceilings, measured after the steps: INT8 {}, bf16 {}, copying {}. An op's bytes: "
      "its\nmatrices, each counted once.",
      in("TOPS", bench.int8_ceiling_tops), in("TOPS", bench.bf16_ceiling_tops),
      in("GB/s", bench.copy_gb_per_s));
}

}  // namespace

std::string to_json(const StepBench& bench) try {
  return document("octet.bench.step/1",
                  {{"device", bench.device},
                   {"date", bench.date},
                   {"commit", bench.commit},
                   {"dtype", word_of(bench.activations)},
                   {"linears", word_of(bench.linears)},
                   {"attention", word_of(bench.attention)},
                   {"threads", bench.threads},
                   {"width", bench.width},
                   {"height", bench.height},
                   {"text_tokens", bench.text_tokens},
                   {"layers", bench.layers},
                   {"parameters", bench.parameters},
                   {"weight_bytes", bench.weight_bytes},
                   {"peak_bytes", bench.peak_bytes},
                   {"steps", bench.steps},
                   {"ms", bench.ms()},
                   {"step_ms", bench.step_ms},
                   {"launches", bench.launches > 0 ? Json(bench.launches) : Json()},
                   {"allocations", bench.allocations},
                   {"waits", bench.waits},
                   {"ceilings",
                    {{"int8_tops", known(bench.int8_ceiling_tops)},
                     {"bf16_tops", known(bench.bf16_ceiling_tops)},
                     {"copy_gb_per_s", known(bench.copy_gb_per_s)}}},
                   {"power", json_of(bench.power)},
                   {"branches", list_of(bench.branches, json_of)}});
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const StepBench& bench) try {
  constexpr double kNoticeable = 0.03;
  double watched_ms = 0;
  for (const StepBranch& branch : bench.branches) watched_ms += branch.watched_ms;
  const Speeds speed(bench);
  const bool is_disturbed = std::abs(watched_ms / bench.ms() - 1) > kNoticeable;
  return fmt::format(
      "{}\n{} x {} pixels, {} text tokens, layers: {}, linears {}, activations {}\n"
      "{:.2f} billion random weights in {}, at most {} in use during a step\n\n"
      "{}\n{}\n{}\nMedians of {} step{}; a step is one pass of each network, guidance and update. "
      "gemm: native\nINT8; matmul: not quantized. {}\n{}\n{}\n{}{}",
      bench.device, bench.width, bench.height, bench.text_tokens, bench.layers,
      word_of(bench.linears), word_of(bench.activations),
      static_cast<double>(bench.parameters) * 1e-9, human_bytes(bench.weight_bytes),
      human_bytes(bench.peak_bytes), branch_table(bench, speed), op_table(bench, speed, watched_ms),
      kernel_table(bench, speed), bench.steps, bench.steps == 1 ? "" : "s",
      is_disturbed ? fmt::format("Ops were timed in separate passes, at {} ms per step.",
                                 short_number(watched_ms))
                   : "Ops were timed in separate passes.",
      work_line(bench), ceiling_line(bench), power_line(bench.power),
      unreliable_line(bench.branches));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
