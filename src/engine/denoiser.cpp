#include "engine/denoiser.h"

#include <algorithm>

namespace octet::engine {

std::vector<std::vector<size_t>> shares_of(const models::Family& family, size_t devices) {
  std::vector<std::vector<size_t>> shares(devices);
  for (size_t branch = 0; branch < family.branches.size(); ++branch) {
    shares[branch == 0 ? 0 : devices - 1].push_back(branch);
  }
  return shares;
}

bool Denoiser::has(size_t branch) const { return std::ranges::count(branches, branch) > 0; }

}  // namespace octet::engine
