// All that ran, in order, each piece with its class and what tells it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/patterns.h"
#include "audit/products.h"
#include "audit/trace.h"
#include "octet/tools/audit.h"

namespace octet::audit {

// Types of operands beat counted instructions, and these beat a name.
enum class Evidence : uint8_t { nothing, types, name, op_name, instructions, neighbours };

// One kernel, or one op of a run on the CPU. Small: there are hundreds of thousands.
struct Work {
  uint32_t event = 0;  // of Trace::kernels, or of Trace::ops
  WorkClass work = WorkClass::unknown;
  ScalarType type = ScalarType::unknown;  // of a dequantized weight
  Evidence evidence = Evidence::nothing;

  void become(WorkClass other, Evidence by) {
    work = other;
    evidence = by;
  }
};

class WorkList {
 public:
  explicit WorkList(const Trace& trace);

  const Trace& trace() const { return trace_; }
  std::vector<Work>& works() { return works_; }
  const std::vector<Work>& works() const { return works_; }

  double start_us(const Work& work) const;
  double us(const Work& work) const;
  int64_t calls(const Work& work) const;
  uint32_t name_index(const Work& work) const;  // of Trace::names
  const std::string& name(const Work& work) const { return trace_.names[name_index(work)]; }
  // The op itself on a CPU, else the innermost that launched the kernel; kNone: not told.
  uint32_t op(const Work& work) const;
  // That op's operands, or those of the op that called it; null: not recorded.
  const Signature* signature(const Work& work) const;
  // Those of the op and of its callers, a few levels up.
  std::vector<const Signature*> signatures_around(const Work& work) const;
  // The name of the op that the signature belongs to, or of the innermost.
  std::string_view op_name(const Work& work) const;
  bool is_called_by(const Work& work, std::string_view op) const;
  // Whether the op of the first called that of the second, at most a few levels down.
  bool calls_op_of(const Work& caller, const Work& called) const;
  // Whether an op around it that multiplies also ran a product in INT8.
  bool is_part_of_int8(const Work& work) const;
  // Training: gradients are products too, of which none is a linear.
  bool is_in_backward(const Work& work) const;
  // Between steps of training, states are widened that are no weights.
  bool is_in_optimizer(const Work& work) const;
  // Whether the one belongs to a layer that the other is no part of.
  bool is_elsewhere(const Work& work, const Work& product) const;
  bool is_softmax(const Work& work) const;
  // On a CPU, code that Inductor compiled leaves no events but for the libraries that it calls.
  bool hides_work(const Work& work) const;
  // Whether it is such code itself.
  bool is_compiled(const Work& work) const;
  // The nearest range around it that somebody named; empty: none.
  std::string_view layer(const Work& work) const;
  // Of a product, where its operands were recorded.
  std::optional<Product> product(const Work& work) const;
  // What matched: the pattern of a name, "operands", ...
  std::string evidence(const Work& work) const;
  std::string_view library(const Work& work) const { return row(work).library; }

 private:
  void list_kernels();
  void list_ops();
  Work classified(uint32_t kernel) const;
  void note_int8();
  bool is_within(uint32_t op, WorkClass work) const;
  uint32_t layer_op(const Work& work) const;
  uint32_t op_with_operands(const Work& work) const;
  std::optional<WorkClass> class_by_types(const Work& work, WorkClass of_op) const;
  const NameRow& row(const Work& work) const;
  const NameRow& row_of_op(uint32_t op) const { return *as_op_[trace_.ops[op].name]; }

  const Trace& trace_;
  bool on_host_;
  std::vector<const NameRow*> as_kernel_, as_op_;  // by name
  std::vector<bool> runs_int8_;                    // by op: it, or one that it called
  std::vector<Work> works_;
};

// Where the time went, along the trace, in so many pieces; empty where nothing has a time.
inline constexpr size_t kTimelinePieces = 120;
AuditTimeline timeline_of(const WorkList& list);

}  // namespace octet::audit
