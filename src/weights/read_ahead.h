// Asks for the bytes of linears before they are loaded: the system reads them while others run.
#pragma once

#include "nn/weights.h"
#include "weights/weight_source.h"

namespace octet::weights {

// All else of a model is small.
class ReadAhead : public nn::WeightVisitor {
 public:
  explicit ReadAhead(const WeightSource& source) : source_(source) {}

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv&, const nn::ConvSpec&) override {}
  void vector(nn::Vector&, const std::string&, int64_t) override {}
  void table(nn::Table&, const std::string&, int64_t, int64_t) override {}

 private:
  const WeightSource& source_;
};

}  // namespace octet::weights
