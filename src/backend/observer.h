// Who wants to know what a backend does, and what it takes.
#pragma once

#include <cstddef>
#include <string_view>

namespace octet {

struct AttentionArgs;
struct GemmProblem;

// What an op has to do, however it does it: its time is compared with this.
struct OpWork {
  double operations = 0;  // multiplications and additions of gemm, matmul, attention, convolution
  double int8_operations = 0;  // of these, products of INT8 codes and their sums
  double bytes = 0;            // of what it reads and writes, each once

  OpWork& operator+=(const OpWork& other) {
    operations += other.operations;
    int8_operations += other.int8_operations;
    bytes += other.bytes;
    return *this;
  }
};

// An op that was done.
struct OpRecord {
  // Its class, a literal: gemm, matmul, quantize, norm, rotary, attention, activation, residual,
  // embed, convolution, sampling.
  std::string_view op;
  std::string_view kernel;  // where the backend chooses among several, else empty
  OpWork work;
  // Of a gemm and of attention, else null; gone after the call.
  const GemmProblem* problem = nullptr;
  const AttentionArgs* attention = nullptr;
};

// Called around each op: profiles and kernel reports are made from it.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void before(std::string_view op) = 0;
  virtual void after(const OpRecord& record) = 0;  // not called if the op threw
};

// One op as its observer sees it; the observer may be null.
class Observed {
 public:
  Observed(OpObserver* observer, std::string_view op) : observer_(observer), op_(op) {
    if (observer_ != nullptr) observer_->before(op_);
  }
  void done(const OpWork& work, std::string_view kernel = {}, const GemmProblem* problem = nullptr,
            const AttentionArgs* attention = nullptr) const {
    if (observer_ != nullptr) observer_->after({op_, kernel, work, problem, attention});
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
