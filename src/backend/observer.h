// Who wants to know what a backend does, and what it takes.
#pragma once

#include <cstddef>
#include <string_view>

namespace octet {

// Told around each op: what profiles and kernel reports are made of.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // `op`: its class: gemm, matmul, quantize, norm, rotary, attention, activation, residual, embed,
  // convolution.
  virtual void before(std::string_view op) = 0;
  // `kernel`: where the backend chooses among several, else empty. `operations`: multiplications
  // and additions of gemm, matmul, attention and convolution, else 0. Not told when the op threw.
  virtual void after(std::string_view op, std::string_view kernel, double operations) = 0;
};

// One op as its observer sees it; the observer may be null.
class Observed {
 public:
  Observed(OpObserver* observer, std::string_view op) : observer_(observer), op_(op) {
    if (observer_ != nullptr) observer_->before(op_);
  }
  void done(std::string_view kernel = {}, double operations = 0) const {
    if (observer_ != nullptr) observer_->after(op_, kernel, operations);
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
};

}  // namespace octet
