#include "audit/work_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/never_destroyed.h"

namespace octet::audit {
namespace {

// Callers are looked at this far up: deeper ones are of the model, not of one op.
constexpr int kMaxCallers = 16;

// Ranges of profilers and engines, not of a model: "ProfilerStep#3", vLLM's
// "execute_context_1(128)_generation_4(4)", a function of Dynamo.
bool names_a_layer(std::string_view range) {
  static constexpr std::array kBegins = {"ProfilerStep",
                                         "Iteration",
                                         "## Call CompiledFxGraph",
                                         "Torch-Compiled",
                                         "PyTorch Profiler",
                                         "TorchDynamo",
                                         "CompiledFunction",
                                         "DtoH",
                                         "HtoD",
                                         "cudagraph",
                                         "execute_",
                                         "generation_",
                                         "gpu_model_runner",
                                         "schedule",
                                         "Optimizer.",
                                         "nccl:",
                                         "Command Buffer",
                                         "CUDAGraph"};
  static constexpr std::array kWhole = {"forward", "backward", "step",      "prefill", "decode",
                                        "sample",  "warmup",   "inference", "generate"};
  // Steps have a number behind the word: "step 3", "denoise_step_12".
  const size_t step = range.rfind("step");
  const bool counts_steps =
      step != range.npos && range.find_first_not_of(" _#:-0123456789", step + 4) == range.npos;
  return !range.empty() && !counts_steps &&
         std::none_of(kBegins.begin(), kBegins.end(),
                      [&](std::string_view begin) { return range.starts_with(begin); }) &&
         std::find(kWhole.begin(), kWhole.end(), range) == kWhole.end();
}

bool is_arithmetic(WorkClass work) {
  return work == WorkClass::elementwise || work == WorkClass::copy;
}

bool is_native_gemm(WorkClass work) {
  return work == WorkClass::int8_gemm || work == WorkClass::fp8_gemm ||
         work == WorkClass::four_bit_gemm;
}

// The first that `is_it` takes of an op, its caller, and so on for so many levels; kNone: none.
template <class IsIt>
uint32_t first_caller(const Trace& trace, uint32_t op, int levels, const IsIt& is_it) {
  for (int i = 0; op != kNone && i < levels; ++i, op = trace.ops[op].parent) {
    if (is_it(op)) return op;
  }
  return kNone;
}

// Counted instructions say what no name can hide.
std::optional<WorkClass> by_instructions(const Kernel& kernel, const NameRow& named) {
  const double int8 = kernel.int8_instructions, half = kernel.half_instructions,
               fp8 = kernel.fp8_instructions;
  const double most = std::max({int8, half, fp8});
  if (most <= 0) return std::nullopt;
  const bool may_be_gemm = is_gemm(named.work) || named.work == WorkClass::unknown;
  if (!may_be_gemm) return std::nullopt;
  if (int8 == most) return WorkClass::int8_gemm;
  if (fp8 == most) return WorkClass::fp8_gemm;
  // A weight-only kernel runs the instructions of bf16, as does attention.
  if (named.work == WorkClass::weight_only_gemm) return std::nullopt;
  // The pipe of bf16 also runs tf32, FP8 and packed additions: it contradicts none of these.
  if (named.work == WorkClass::int8_gemm || named.work == WorkClass::gemm) {
    return WorkClass::half_gemm;
  }
  return std::nullopt;
}

}  // namespace

WorkList::WorkList(const Trace& trace) : trace_(trace), on_host_(trace.is_host_only()) {
  static const auto& unasked = never_destroyed<NameRow>();
  as_op_.resize(trace.names.size(), &unasked);
  as_kernel_ = as_op_;
  std::vector<bool> is_op(trace.names.size()), is_kernel(trace.names.size());
  for (const Op& op : trace.ops) {
    if (!op.is_range) is_op[op.name] = true;
  }
  for (const Kernel& kernel : trace.kernels) is_kernel[kernel.name] = true;
  for (size_t i = 0; i < trace.names.size(); ++i) {
    if (is_op[i]) as_op_[i] = &op_by_name(trace.names[i]);
    if (is_kernel[i]) as_kernel_[i] = &kernel_by_name(trace.names[i]);
  }
  if (on_host_) {
    list_ops();
  } else {
    list_kernels();
  }
  note_int8();
}

void WorkList::note_int8() {
  runs_int8_.resize(trace_.ops.size());
  for (const Work& work : works_) {
    if (work.work != WorkClass::int8_gemm) continue;
    first_caller(trace_, op(work), kMaxCallers, [&](uint32_t op) {
      if (!trace_.ops[op].is_range) runs_int8_[op] = true;
      return trace_.ops[op].is_range;
    });
  }
}

bool WorkList::is_part_of_int8(const Work& work) const {
  const uint32_t found = first_caller(trace_, op(work), kMaxCallers, [&](uint32_t op) {
    return trace_.ops[op].is_range || (runs_int8_[op] && is_gemm(row_of_op(op).work));
  });
  return found != kNone && !trace_.ops[found].is_range;
}

bool WorkList::calls_op_of(const Work& caller, const Work& called) const {
  constexpr int kLevels = 3;
  const uint32_t wanted = op(caller), from = op(called);
  if (wanted == kNone || from == kNone) return false;
  const auto is_wanted = [&](uint32_t op) { return op == wanted; };
  return first_caller(trace_, trace_.ops[from].parent, kLevels, is_wanted) != kNone;
}

bool WorkList::is_within(uint32_t op, WorkClass work) const {
  return first_caller(trace_, op, kMaxCallers, [&](uint32_t caller) {
           return !trace_.ops[caller].is_range && row_of_op(caller).work == work;
         }) != kNone;
}

Work WorkList::classified(uint32_t index) const {
  const Kernel& kernel = trace_.kernels[index];
  const NameRow& named = *as_kernel_[kernel.name];
  Work work{.event = index, .work = named.work, .type = named.type, .evidence = Evidence::name};
  if (kernel.is_transfer) {
    work.work = WorkClass::copy;
    return work;
  }
  if (is_within(kernel.op, WorkClass::attention)) {
    work.become(WorkClass::attention, Evidence::op_name);
    return work;
  }
  const bool has_op = kernel.op != kNone && !trace_.ops[kernel.op].is_range;
  const WorkClass of_op = has_op ? row_of_op(kernel.op).work : WorkClass::unknown;
  if (is_gemm(work.work) || work.work == WorkClass::unknown) {
    if (is_within(kernel.op, WorkClass::convolution)) {
      work.become(WorkClass::convolution, Evidence::op_name);
      return work;
    }
    // Ops that only multiply: the types of their operands are those of the product.
    const auto by_types = class_by_types(work, of_op);
    if (is_gemm(of_op)) {
      if (by_types) {
        // PyTorch may run f32 as tf32, which is the same class; bf16 as f32 it may not.
        work.become(*by_types, Evidence::types);
      } else if (work.work == WorkClass::unknown || work.work == WorkClass::gemm) {
        work.become(of_op, Evidence::op_name);
      }
    } else if (by_types && work.work == WorkClass::gemm && of_op == WorkClass::unknown &&
               is_native_gemm(*by_types)) {
      // An op that nobody knows with codes on both sides, and a kernel that says it multiplies.
      work.become(*by_types, Evidence::types);
    }
    if (const auto counted = by_instructions(kernel, named);
        counted && work.evidence != Evidence::types && *counted != work.work) {
      work.become(*counted, Evidence::instructions);
    }
  } else if (is_gemm(of_op) && named.pattern.find("splitK") != std::string::npos) {
    // Adds up the parts of a product that was split: a part of it. Its own types are the result's.
    work.become(class_by_types(work, of_op).value_or(of_op), Evidence::op_name);
  } else if (is_arithmetic(work.work) && is_within(kernel.op, WorkClass::norm)) {
    work.become(WorkClass::norm, Evidence::op_name);
  }
  // One kernel widens codes of several types, and the op that called it says which.
  const bool widens = has_op && work.work == of_op && of_op == WorkClass::dequantize_weight;
  if (widens && is_code(row_of_op(kernel.op).type)) {
    work.type = row_of_op(kernel.op).type;
  }
  if (work.work == WorkClass::unknown) work.evidence = Evidence::nothing;
  return work;
}

void WorkList::list_kernels() {
  works_.reserve(trace_.kernels.size());
  for (uint32_t i = 0; i < trace_.kernels.size(); ++i) works_.push_back(classified(i));
}

void WorkList::list_ops() {
  // A product within a product (aten::mm of aten::linear) is the one that counts.
  std::vector<bool> wraps(trace_.ops.size());
  for (const Op& op : trace_.ops) {
    if (op.is_range || !is_gemm(as_op_[op.name]->work)) continue;
    first_caller(trace_, op.parent, kMaxCallers, [&](uint32_t caller) {
      wraps[caller] = true;
      return false;
    });
  }
  for (uint32_t i = 0; i < trace_.ops.size(); ++i) {
    const Op& op = trace_.ops[i];
    if (op.is_range || !(op.self_us > 0)) continue;
    const NameRow& named = *as_op_[op.name];
    Work work{.event = i, .work = named.work, .type = named.type, .evidence = Evidence::name};
    if (work.work != WorkClass::attention && is_within(op.parent, WorkClass::attention)) {
      work.become(WorkClass::attention, Evidence::op_name);
    } else if (is_gemm(work.work) && wraps[i]) {
      work.work = WorkClass::other;
    } else if (is_gemm(work.work)) {
      const auto by_types = class_by_types(work, named.work);
      if (by_types) work.become(*by_types, Evidence::types);
    } else if (is_arithmetic(work.work) && is_within(op.parent, WorkClass::norm)) {
      work.become(WorkClass::norm, Evidence::op_name);
    } else if (work.work != WorkClass::convolution &&
               is_within(op.parent, WorkClass::convolution)) {
      work.become(WorkClass::convolution, Evidence::op_name);
    }
    if (work.work == WorkClass::unknown) work.evidence = Evidence::nothing;
    works_.push_back(work);
  }
  // Threads work for each other: what came before what is a matter of time.
  std::stable_sort(works_.begin(), works_.end(), [this](const Work& a, const Work& b) {
    return trace_.ops[a.event].start_us < trace_.ops[b.event].start_us;
  });
}

double WorkList::start_us(const Work& work) const {
  return on_host_ ? trace_.ops[work.event].start_us : trace_.kernels[work.event].start_us;
}

double WorkList::us(const Work& work) const {
  return on_host_ ? static_cast<double>(trace_.ops[work.event].self_us)
                  : trace_.kernels[work.event].us;
}

int64_t WorkList::calls(const Work& work) const {
  return on_host_ ? 1 : trace_.kernels[work.event].calls;
}

uint32_t WorkList::name_index(const Work& work) const {
  return on_host_ ? trace_.ops[work.event].name : trace_.kernels[work.event].name;
}

uint32_t WorkList::op(const Work& work) const {
  return on_host_ ? work.event : trace_.kernels[work.event].op;
}

uint32_t WorkList::op_with_operands(const Work& work) const {
  constexpr int kLevels = 3;
  const uint32_t innermost = op(work);
  const uint32_t found = first_caller(trace_, innermost, kLevels, [&](uint32_t op) {
    return trace_.ops[op].is_range || trace_.ops[op].signature != kNone;
  });
  return found == kNone || trace_.ops[found].is_range ? innermost : found;
}

const Signature* WorkList::signature(const Work& work) const {
  const uint32_t op = op_with_operands(work);
  if (op == kNone || trace_.ops[op].signature == kNone) return nullptr;
  return &trace_.signatures[trace_.ops[op].signature];
}

std::vector<const Signature*> WorkList::signatures_around(const Work& work) const {
  constexpr int kLevels = 4;
  std::vector<const Signature*> found;
  first_caller(trace_, op(work), kLevels, [&](uint32_t op) {
    const Op& caller = trace_.ops[op];
    if (caller.is_range) return true;
    if (caller.signature != kNone) found.push_back(&trace_.signatures[caller.signature]);
    return false;
  });
  return found;
}

std::string_view WorkList::op_name(const Work& work) const {
  const uint32_t op = op_with_operands(work);
  return op == kNone || trace_.ops[op].is_range
             ? std::string_view()
             : std::string_view(trace_.names[trace_.ops[op].name]);
}

bool WorkList::is_called_by(const Work& work, std::string_view name) const {
  return first_caller(trace_, op(work), kMaxCallers, [&](uint32_t op) {
           return trace_.names[trace_.ops[op].name] == name;
         }) != kNone;
}

bool WorkList::is_in_backward(const Work& work) const {
  return first_caller(trace_, op(work), 2 * kMaxCallers, [&](uint32_t op) {
           return trace_.names[trace_.ops[op].name].starts_with("autograd::engine::");
         }) != kNone;
}

bool WorkList::is_in_optimizer(const Work& work) const {
  return first_caller(trace_, op(work), 2 * kMaxCallers, [&](uint32_t op) {
           return trace_.names[trace_.ops[op].name].starts_with("Optimizer.");
         }) != kNone;
}

bool WorkList::is_elsewhere(const Work& work, const Work& product) const {
  const uint32_t outer = layer_op(work), inner = layer_op(product);
  const auto is_within = [&](uint32_t op, uint32_t layer) {
    return layer == kNone || first_caller(trace_, op, 2 * kMaxCallers,
                                          [&](uint32_t at) { return at == layer; }) != kNone;
  };
  return !is_within(inner, outer) && !is_within(outer, inner);
}

bool WorkList::is_softmax(const Work& work) const {
  if (work.work != WorkClass::elementwise) return false;
  const auto says_so = [](std::string_view name) {
    return name.find("oftmax") != name.npos || name.find("oftMax") != name.npos ||
           name.find("soft_max") != name.npos;
  };
  return says_so(name(work)) || says_so(op_name(work));
}

bool WorkList::is_compiled(const Work& work) const {
  return on_host_ && is_compiled_code(name(work));
}

bool WorkList::hides_work(const Work& work) const {
  const auto is_compiled = [&](uint32_t op) {
    return is_compiled_code(trace_.names[trace_.ops[op].name]);
  };
  return on_host_ && first_caller(trace_, op(work), kMaxCallers, is_compiled) != kNone;
}

uint32_t WorkList::layer_op(const Work& work) const {
  return first_caller(trace_, op(work), 2 * kMaxCallers, [&](uint32_t op) {
    return trace_.ops[op].is_range && names_a_layer(trace_.names[trace_.ops[op].name]);
  });
}

std::string_view WorkList::layer(const Work& work) const {
  const uint32_t found = layer_op(work);
  return found == kNone ? std::string_view() : trace_.names[trace_.ops[found].name];
}

std::optional<Product> WorkList::product(const Work& work) const {
  const Signature* operands = signature(work);
  return operands == nullptr ? std::nullopt : product_of(op_name(work), *operands);
}

// Where names know better than types, nothing.
std::optional<WorkClass> WorkList::class_by_types(const Work& work, WorkClass of_op) const {
  const Signature* operands = signature(work);
  if (operands == nullptr) return std::nullopt;
  const bool widens = work.work == WorkClass::weight_only_gemm;
  if (widens && is_gemm(of_op)) {
    // Nobody quantizes activations to widen them: the weights become what the activations are.
    const ScalarType activations = activations_of(op_name(work), *operands);
    if (activations == ScalarType::fp8) return WorkClass::fp8_gemm;
    if (activations == ScalarType::int8) return WorkClass::int8_gemm;
  }
  const auto product = product_of(op_name(work), *operands);
  const auto by_types = product ? gemm_of_types(product->a, product->weight) : std::nullopt;
  // The name of a kernel says more than an op that reads codes and widens them; and bytes may hold
  // two codes each.
  const bool packs = work.work == WorkClass::four_bit_gemm || of_op == WorkClass::four_bit_gemm;
  if (widens || (packs && by_types == WorkClass::int8_gemm)) return std::nullopt;
  return by_types;
}

const NameRow& WorkList::row(const Work& work) const {
  return *(on_host_ ? as_op_ : as_kernel_)[name_index(work)];
}

std::string WorkList::evidence(const Work& work) const {
  const uint32_t op = this->op(work);
  switch (work.evidence) {
    case Evidence::nothing: return "";
    case Evidence::types: return "types of the operands";
    case Evidence::name: return fmt::format("name: {}", row(work).pattern);
    case Evidence::op_name:
      return op == kNone ? "op" : fmt::format("op: {}", trace_.names[trace_.ops[op].name]);
    case Evidence::instructions: return "instructions";
    case Evidence::neighbours: return "operands, and the product that follows";
  }
  return "";
}

}  // namespace octet::audit
