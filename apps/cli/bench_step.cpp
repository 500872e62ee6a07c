// octet bench step
#include "octet/tools/bench_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <type_traits>

#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "output.h"
#include "output_files.h"
#include "power_text.h"
#include "steadiness.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const StepBranch& branch) {
  Json ops = Json::array();
  for (const StepOp& op : branch.ops) {
    ops.push_back({{"op", op.op},
                   {"calls", op.calls},
                   {"ms", op.ms},
                   {"share", op.share},
                   {"operations", known(op.operations)},
                   {"bytes", known(op.bytes)},
                   {"tops", known(op.tops)},
                   {"gb_per_s", known(op.gb_per_s)},
                   {"ceiling_share", known(op.ceiling_share)}});
  }
  Json kernels = Json::array();
  for (const StepKernel& use : branch.kernels) {
    kernels.push_back({{"layer", use.layer},
                       {"op", use.op},
                       {"kernel", known(use.kernel)},
                       {"calls", use.calls},
                       {"ms", use.ms},
                       {"tops", known(use.tops)},
                       {"ceiling_share", known(use.ceiling_share)}});
  }
  Json json = {{"name", branch.name}, {"tokens", branch.tokens}, {"ms", branch.ms}};
  add_steadiness(json, branch.steadiness);
  json.update({{"watched_ms", branch.watched_ms},
               {"int8_tops", known(branch.int8_tops)},
               {"ops", ops},
               {"kernels", kernels}});
  return json;
}

Json to_json(const StepBench& bench) {
  Json branches = Json::array();
  for (const StepBranch& branch : bench.branches) branches.push_back(to_json(branch));
  return {{"device", bench.device},
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
          {"power", power_json(bench.power)},
          {"branches", branches}};
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
  Table table({"transformer", "tokens", "ms", "INT8 " + speed.unit()}, 1);
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

std::string to_text(const StepBench& bench) {
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
}

}  // namespace

void add_bench_step(CLI::App& bench, CommonFlags& flags) {
  CLI::App* step = bench.add_subcommand(
      "step", "One denoising step of the full-size model, with random weights");
  add_device_flags(*step, flags);
  add_output_flags(*step, flags);
  const auto request = std::make_shared<StepBenchRequest>();
  const auto steps = std::make_shared<int64_t>(request->steps);
  // Weights are always random. Earlier versions wanted this said: accepted, and not shown.
  step->add_flag("--random")->group("");
  add_image_size(*step, request->width, request->height);
  add_whole_number(*step, "--text-tokens", request->text_tokens, 0, 2048, "Tokens of the caption");
  add_whole_number(*step, "--layers", request->layers, 1, request->layers,
                   "Fewer layers, to save memory or time");
  add_choice(*step, "--dtype", request->activations,
             "Type of activations, and of weights that are not INT8");
  add_choice(*step, "--linears", request->linears, "Precision of the large linears",
             {Linears::int8, Linears::floating});
  add_choice(*step, "--attention", request->attention,
             "Precision of attention: int8 for its scores, int8-full for all of it");
  add_require_int8(*step, request->require_int8);
  add_choice(*step, "--tune", request->tuning,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
  add_whole_number(*step, "--steps", *steps, 1, 1000, "Steps to measure");
  set_examples(*step, {"octet bench step --device cuda --size 1024",
                       "octet bench step --size 256 --layers 2 --steps 3"});
  step->callback([&flags, request, steps] {
    request->device = flags.device;
    request->threads = flags.threads;
    request->steps = static_cast<int>(*steps);
    check_outputs(flags);
    const StepBench result = [&] {
      PhaseReports progress(flags, "bench step");
      return bench_step(*request, std::ref(progress));
    }();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
