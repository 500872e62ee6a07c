// What a session keeps from one picture for the next.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/linears_ran.h"
#include "engine/preparations.h"
#include "engine/preview.h"
#include "engine/prompt_cache.h"
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

// Times of the last picture, for estimates; 0: unknown.
struct KeptTimes {
  double text_s_per_token = 0, evaluation_s_per_token = 0, decode_s_per_pixel = 0;
};

struct Kept {
  PromptCache prompts;
  Preparations preparations;
  KeptKernels kernels;
  std::optional<PreviewMap> preview = {};
  KeptTimes times = {};
};

}  // namespace octet::engine
