// Which kernel the gemms of a backend run on.
#pragma once

#include <string>

#include "backend/backend.h"

namespace octet {

// Watches the backend during its life, instead of any other observer.
class KernelWatch final : public OpObserver {
 public:
  explicit KernelWatch(Backend& backend) : backend_(backend) { backend_.set_op_observer(this); }
  ~KernelWatch() override { backend_.set_op_observer(nullptr); }
  KernelWatch(const KernelWatch&) = delete;
  KernelWatch& operator=(const KernelWatch&) = delete;

  void before(std::string_view) override {}
  void after(const OpRecord& record) override {
    if (record.problem == nullptr) return;
    ++gemms_;
    if (kernel_ != record.kernel) kernel_ = record.kernel;
  }

  const std::string& kernel() const { return kernel_; }  // of the latest gemm
  int gemms() const { return gemms_; }

 private:
  Backend& backend_;
  std::string kernel_;
  int gemms_ = 0;
};

}  // namespace octet
