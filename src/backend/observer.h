// Who wants to know what a backend does, and what it takes.
#pragma once

#include <cstddef>
#include <string_view>

namespace octet {

struct AttentionArgs;
struct GemmProblem;

// An op that was done.
struct OpRecord {
  // Its class, a literal: gemm, matmul, quantize, norm, rotary, attention, activation, residual,
  // embed, convolution, sampling.
  std::string_view op;
  std::string_view kernel;  // where the backend chooses among several, else empty
  double operations = 0;    // multiplications and additions of gemm, matmul, attention, convolution
  // Of a gemm and of attention, else null; gone after the call.
  const GemmProblem* problem = nullptr;
  const AttentionArgs* attention = nullptr;
};

// Told around each op: what profiles and kernel reports are made of.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void before(std::string_view op) = 0;
  virtual void after(const OpRecord& record) = 0;  // not told when the op threw
};

// One op as its observer sees it; the observer may be null.
class Observed {
 public:
  Observed(OpObserver* observer, std::string_view op) : observer_(observer), op_(op) {
    if (observer_ != nullptr) observer_->before(op_);
  }
  void done(std::string_view kernel = {}, double operations = 0,
            const GemmProblem* problem = nullptr, const AttentionArgs* attention = nullptr) const {
    if (observer_ != nullptr) observer_->after({op_, kernel, operations, problem, attention});
  }

 private:
  OpObserver* observer_;
  std::string_view op_;
};

struct MemoryUse {
  size_t used = 0;  // bytes
  size_t peak = 0;
  // The most that was taken from the driver, with what is kept for later; 0 where unknown.
  size_t reserved_peak = 0;
  size_t allocations = 0;  // so far
};

}  // namespace octet
