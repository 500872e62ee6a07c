#include "audit/work_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace octet::audit {
namespace {

// Callers are looked at this far up: deeper ones are of the model, not of one op.
constexpr int kMaxCallers = 16;
constexpr size_t kNoPlace = std::string_view::npos;

// "ProfilerStep#3" and the like are of the profiler, not of the model.
bool names_a_layer(std::string_view range) {
  return !range.empty() && !range.starts_with("ProfilerStep") && !range.starts_with("Iteration") &&
         !range.starts_with("## Call CompiledFxGraph") && !range.starts_with("Torch-Compiled") &&
         !range.starts_with("PyTorch Profiler") && !range.starts_with("TorchDynamo") &&
         !range.starts_with("CompiledFunction") && !range.starts_with("DtoH") &&
         !range.starts_with("cudagraph");
}

// Counted instructions say what no name can hide.
std::optional<WorkClass> by_instructions(const Kernel& kernel, const NamedKernel& named) {
  const double int8 = kernel.int8_instructions, half = kernel.half_instructions,
               fp8 = kernel.fp8_instructions;
  const double most = std::max({int8, half, fp8});
  if (most <= 0) return std::nullopt;
  const bool may_be_gemm = is_gemm(named.work) || named.work == WorkClass::unknown;
  // A weight-only kernel runs the instructions of bf16, as does attention.
  if (!may_be_gemm || named.work == WorkClass::weight_only_gemm) return std::nullopt;
  if (int8 == most) return WorkClass::int8_gemm;
  if (fp8 == most) return WorkClass::fp8_gemm;
  // The pipe of bf16 also runs tf32, FP8 and packed additions: it contradicts none of these.
  if (named.work == WorkClass::int8_gemm || named.work == WorkClass::gemm) {
    return WorkClass::half_gemm;
  }
  return std::nullopt;
}

}  // namespace

WorkList::WorkList(const Trace& trace) : trace_(trace), on_host_(trace.is_host_only()) {
  as_op_.resize(trace.names.size());
  as_kernel_.resize(trace.names.size());
  std::vector<bool> is_op(trace.names.size()), is_kernel(trace.names.size());
  for (const Op& op : trace.ops) {
    if (!op.is_range) is_op[op.name] = true;
  }
  for (const Kernel& kernel : trace.kernels) is_kernel[kernel.name] = true;
  for (size_t i = 0; i < trace.names.size(); ++i) {
    if (is_op[i]) as_op_[i] = op_by_name(trace.names[i]);
    if (is_kernel[i]) as_kernel_[i] = kernel_by_name(trace.names[i]);
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
    uint32_t op = this->op(work);
    for (int i = 0; op != kNone && i < kMaxCallers; ++i, op = trace_.ops[op].parent) {
      if (trace_.ops[op].is_range) break;
      runs_int8_[op] = true;
    }
  }
}

bool WorkList::is_part_of_int8(const Work& work) const {
  uint32_t op = this->op(work);
  for (int i = 0; op != kNone && i < kMaxCallers; ++i, op = trace_.ops[op].parent) {
    if (trace_.ops[op].is_range) return false;
    if (runs_int8_[op] && is_gemm(as_op_[trace_.ops[op].name].work)) return true;
  }
  return false;
}

bool WorkList::calls_op_of(const Work& caller, const Work& called) const {
  constexpr int kLevels = 3;
  const uint32_t wanted = op(caller);
  uint32_t op = this->op(called);
  if (wanted == kNone || op == kNone) return false;
  for (int i = 0; i < kLevels; ++i) {
    op = trace_.ops[op].parent;
    if (op == kNone) return false;
    if (op == wanted) return true;
  }
  return false;
}

bool WorkList::is_within(uint32_t op, WorkClass work) const {
  for (int i = 0; op != kNone && i < kMaxCallers; ++i, op = trace_.ops[op].parent) {
    if (!trace_.ops[op].is_range && as_op_[trace_.ops[op].name].work == work) return true;
  }
  return false;
}

Work WorkList::classified(uint32_t index) {
  const Kernel& kernel = trace_.kernels[index];
  const NamedKernel& named = as_kernel_[kernel.name];
  Work work{.event = index, .work = named.work, .type = named.type, .evidence = Evidence::name};
  if (kernel.is_transfer) {
    work.work = WorkClass::copy;
    return work;
  }
  if (is_within(kernel.op, WorkClass::attention)) {
    work.work = WorkClass::attention;
    work.evidence = Evidence::op_name;
    return work;
  }
  const NamedKernel* op = nullptr;
  if (kernel.op != kNone && !trace_.ops[kernel.op].is_range)
    op = &as_op_[trace_.ops[kernel.op].name];
  if (is_gemm(work.work) || work.work == WorkClass::unknown) {
    if (is_within(kernel.op, WorkClass::convolution)) {
      work.work = WorkClass::convolution;
      work.evidence = Evidence::op_name;
      return work;
    }
    if (op != nullptr && is_gemm(op->work)) {
      // Ops that only multiply: the types of their operands are those of the product. The name of
      // a kernel says more than an op that reads codes and widens them.
      const auto operands = product(work);
      const auto by_types =
          operands ? gemm_of_types(operands->a, operands->weight) : std::optional<WorkClass>();
      if (by_types && work.work != WorkClass::weight_only_gemm) {
        // PyTorch may run f32 as tf32, which is the same class; bf16 as f32 it may not.
        work.work = *by_types;
        work.evidence = Evidence::types;
      } else if (work.work == WorkClass::unknown || work.work == WorkClass::gemm) {
        work.work = op->work;
        work.evidence = Evidence::op_name;
      }
    }
    if (const auto counted = by_instructions(kernel, named);
        counted && work.evidence != Evidence::types && *counted != work.work) {
      work.work = *counted;
      work.evidence = Evidence::instructions;
    }
  } else if (op != nullptr && is_gemm(op->work) && named.evidence.find("splitK") != kNoPlace) {
    // Adds up the parts of a product that was split: a part of it. Its own types are the result's.
    const auto operands = product(work);
    const auto by_types =
        operands ? gemm_of_types(operands->a, operands->weight) : std::optional<WorkClass>();
    work.work = by_types.value_or(op->work);
    work.evidence = Evidence::op_name;
  } else if ((work.work == WorkClass::elementwise || work.work == WorkClass::copy) &&
             is_within(kernel.op, WorkClass::norm)) {
    work.work = WorkClass::norm;
    work.evidence = Evidence::op_name;
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
    if (op.is_range || !is_gemm(as_op_[op.name].work)) continue;
    uint32_t caller = op.parent;
    for (int i = 0; caller != kNone && i < kMaxCallers; ++i, caller = trace_.ops[caller].parent) {
      wraps[caller] = true;
    }
  }
  for (uint32_t i = 0; i < trace_.ops.size(); ++i) {
    const Op& op = trace_.ops[i];
    if (op.is_range || !(op.self_us > 0)) continue;
    const NamedKernel& named = as_op_[op.name];
    Work work{.event = i, .work = named.work, .type = named.type, .evidence = Evidence::name};
    if (work.work != WorkClass::attention && is_within(op.parent, WorkClass::attention)) {
      work.work = WorkClass::attention;
      work.evidence = Evidence::op_name;
    } else if (is_gemm(work.work) && wraps[i]) {
      work.work = WorkClass::other;
    } else if (is_gemm(work.work)) {
      const auto operands = product(work);
      const auto by_types =
          operands ? gemm_of_types(operands->a, operands->weight) : std::optional<WorkClass>();
      if (by_types) {
        work.work = *by_types;
        work.evidence = Evidence::types;
      }
    } else if ((work.work == WorkClass::elementwise || work.work == WorkClass::copy) &&
               is_within(op.parent, WorkClass::norm)) {
      work.work = WorkClass::norm;
      work.evidence = Evidence::op_name;
    } else if (work.work != WorkClass::convolution &&
               is_within(op.parent, WorkClass::convolution)) {
      work.work = WorkClass::convolution;
      work.evidence = Evidence::op_name;
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
  uint32_t op = this->op(work);
  const uint32_t innermost = op;
  for (int i = 0; op != kNone && i < 3; ++i, op = trace_.ops[op].parent) {
    if (trace_.ops[op].is_range) break;
    if (trace_.ops[op].signature != kNone) return op;
  }
  return innermost;
}

const Signature* WorkList::signature(const Work& work) const {
  const uint32_t op = op_with_operands(work);
  if (op == kNone || trace_.ops[op].signature == kNone) return nullptr;
  return &trace_.signatures[trace_.ops[op].signature];
}

std::string_view WorkList::op_name(const Work& work) const {
  const uint32_t op = op_with_operands(work);
  return op == kNone || trace_.ops[op].is_range
             ? std::string_view()
             : std::string_view(trace_.names[trace_.ops[op].name]);
}

bool WorkList::is_called_by(const Work& work, std::string_view name) const {
  uint32_t op = this->op(work);
  for (int i = 0; op != kNone && i < kMaxCallers; ++i, op = trace_.ops[op].parent) {
    if (trace_.names[trace_.ops[op].name] == name) return true;
  }
  return false;
}

bool WorkList::hides_work(const Work& work) const {
  if (!on_host_) return false;
  uint32_t op = this->op(work);
  for (int i = 0; op != kNone && i < kMaxCallers; ++i, op = trace_.ops[op].parent) {
    const std::string_view name = trace_.names[trace_.ops[op].name];
    if (name.starts_with("## Call CompiledFxGraph") || name.starts_with("Torch-Compiled")) {
      return true;
    }
  }
  return false;
}

std::string_view WorkList::layer(const Work& work) const {
  uint32_t op = this->op(work);
  for (int i = 0; op != kNone && i < 2 * kMaxCallers; ++i, op = trace_.ops[op].parent) {
    if (!trace_.ops[op].is_range) continue;
    const std::string_view range = trace_.names[trace_.ops[op].name];
    if (names_a_layer(range)) return range;
  }
  return {};
}

std::optional<Product> WorkList::product(const Work& work) const {
  const Signature* operands = signature(work);
  return operands == nullptr ? std::nullopt : product_of(op_name(work), *operands);
}

std::string WorkList::evidence(const Work& work) const {
  const uint32_t op = this->op(work);
  switch (work.evidence) {
    case Evidence::nothing: return "";
    case Evidence::types: return "types of the operands";
    case Evidence::name: {
      const auto& named = on_host_ ? as_op_[trace_.ops[work.event].name]
                                   : as_kernel_[trace_.kernels[work.event].name];
      return fmt::format("name: {}", named.evidence);
    }
    case Evidence::op_name:
      return op == kNone ? "op" : fmt::format("op: {}", trace_.names[trace_.ops[op].name]);
    case Evidence::instructions: return "instructions";
    case Evidence::neighbours: return "operands, and the product that follows";
  }
  return "";
}

std::string_view WorkList::library(const Work& work) const {
  return on_host_ ? as_op_[trace_.ops[work.event].name].library
                  : as_kernel_[trace_.kernels[work.event].name].library;
}

}  // namespace octet::audit
