#include "nn/profile.h"

namespace octet::nn {

Profile::Profile(Backend& backend) : backend_(backend) { backend_.set_op_observer(this); }

Profile::~Profile() { backend_.set_op_observer(nullptr); }

void Profile::before(std::string_view) { begin_ = backend_.mark(); }

void Profile::after(std::string_view op, std::string_view kernel, double operations) {
  events_.push_back({op, layer_, std::string(kernel), operations, begin_, backend_.mark()});
}

void Profile::collect() {
  for (const Event& event : events_) {
    const double us = backend_.microseconds_between(event.begin, event.end);
    const auto count = [&](OpTime& time) {
      ++time.calls;
      time.us += us;
      time.operations += event.operations;
    };
    count(ops_[std::string(event.op)]);
    if (event.op == "gemm" || event.op == "matmul") {
      count(kernels_[{event.layer, {std::string(event.op), event.kernel}}]);
    }
  }
  events_.clear();
  backend_.forget_marks();
}

void Profile::clear() {
  collect();
  ops_.clear();
  kernels_.clear();
}

std::vector<Profile::KernelUse> Profile::kernels() const {
  std::vector<KernelUse> uses;
  for (const auto& [key, time] : kernels_) {
    uses.push_back({key.first, key.second.first, key.second.second, time});
  }
  return uses;
}

}  // namespace octet::nn
