// The kernels that made what is kept between pictures.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nn/profile.h"

namespace octet::engine {

// The kernels behind kept results: they ran for an earlier picture, and later ones use the results.
class KeptKernels {
 public:
  using Kernels = std::vector<nn::Profile::KernelUse>;

  // Adds kernels of layers that are not known yet.
  void add(const std::string& part, Kernels further) {
    Kernels& kernels = parts_[part];
    for (auto& use : further) {
      const bool known = std::any_of(kernels.begin(), kernels.end(),
                                     [&](const auto& kept) { return kept.layer == use.layer; });
      if (!known) kernels.push_back(std::move(use));
    }
  }
  const std::map<std::string, Kernels>& parts() const { return parts_; }

 private:
  std::map<std::string, Kernels> parts_;
};

}  // namespace octet::engine
