// The linears of a model as data, for those who look for one by its name.
#pragma once

#include <string>
#include <vector>

#include "nn/weights.h"

namespace octet::nn {

class LinearList : public WeightVisitor {
 public:
  void linear(Linear&, const LinearSpec& spec) override { linears_.push_back(spec); }
  void conv(Conv&, const ConvSpec&) override {}
  void vector(Vector&, const std::string&, int64_t) override {}
  void table(Table&, const std::string&, int64_t, int64_t) override {}

  const std::vector<LinearSpec>& linears() const { return linears_; }
  std::vector<LinearSpec> large() const {
    std::vector<LinearSpec> found = linears_;
    std::erase_if(found, [](const LinearSpec& spec) { return !spec.large; });
    return found;
  }

 private:
  std::vector<LinearSpec> linears_;
};

}  // namespace octet::nn
