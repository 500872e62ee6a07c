#include "nn/profile.h"

#include <utility>

namespace octet::nn {

Profile::Profile(Backend& backend) : backend_(backend) { backend_.set_op_observer(this); }

Profile::~Profile() { backend_.set_op_observer(nullptr); }

void Profile::before(std::string_view) { begin_ = backend_.mark(); }

void Profile::enter(const Linear& linear, bool fake) {
  enter(linear.layer);
  fake_ = fake;
  if (network_.empty()) return;
  linear_ = &linears_[network_ + "." + linear.name];
  linear_->precision = linear.precision;
}

void Profile::enter(std::string_view layer) {
  layer_ = layer;
  linear_ = nullptr;
  fake_ = false;
}

void Profile::after(const OpRecord& record) {
  if (linear_ != nullptr && record.op == "gemm") ++linear_->int8;
  if (linear_ != nullptr && record.op == "matmul") ++linear_->floating;
  events_.push_back({record.op, layer_, std::string(record.kernel), fake_ && record.op == "matmul",
                     record.work, begin_, backend_.mark()});
}

void Profile::collect() {
  for (const Event& event : events_) {
    const double us = backend_.microseconds_between(event.begin, event.end);
    const auto count = [&](OpTime& time) {
      ++time.calls;
      time.us += us;
      time.work += event.work;
    };
    count(ops_[std::string(event.op)]);
    if (event.op == "gemm" || event.op == "matmul") {
      count(kernels_[{event.layer, std::string(event.op), event.kernel, event.fake}]);
    } else if (event.op == "attention" && !event.kernel.empty()) {
      count(kernels_[{"attention", "attention", event.kernel, false}]);
    }
  }
  events_.clear();
  backend_.forget_marks();
}

void Profile::clear() {
  collect();
  ops_.clear();
  kernels_.clear();
  linears_.clear();
  linear_ = nullptr;
}

std::map<std::string, Profile::LinearUse> Profile::take_linears() {
  linear_ = nullptr;
  return std::exchange(linears_, {});
}

std::vector<Profile::KernelUse> Profile::kernels() const {
  std::vector<KernelUse> uses;
  for (const auto& [key, time] : kernels_) {
    const auto& [layer, op, kernel, fake] = key;
    uses.push_back({layer, op, kernel, fake, time});
  }
  return uses;
}

}  // namespace octet::nn
