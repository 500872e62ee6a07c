// Reports of several pictures as one.
#include <algorithm>

#include "formats/boundary.h"
#include "octet/engine.h"

namespace octet {
namespace {

void add_kernel(std::vector<KernelUse>& kernels, const KernelUse& use) {
  const auto same = std::find_if(kernels.begin(), kernels.end(), [&](const KernelUse& each) {
    return each.layer == use.layer && each.path == use.path && each.kernel == use.kernel;
  });
  if (same == kernels.end()) {
    kernels.push_back(use);
    return;
  }
  const double operations = same->tops * same->us + use.tops * use.us;
  same->launches += use.launches;
  same->us += use.us;
  same->tops = same->us > 0 ? operations / same->us : 0;
}

void add_op(std::vector<OpShare>& ops, const OpShare& share) {
  const auto same = std::find_if(ops.begin(), ops.end(),
                                 [&](const OpShare& each) { return each.op == share.op; });
  if (same == ops.end()) {
    ops.push_back(share);
    return;
  }
  same->calls += share.calls;
  same->us += share.us;
}

void add_branch(std::vector<BranchUse>& branches, const BranchUse& use) {
  const auto same = std::find_if(branches.begin(), branches.end(),
                                 [&](const BranchUse& each) { return each.name == use.name; });
  if (same == branches.end()) {
    branches.push_back(use);
    return;
  }
  same->steps += use.steps;
  same->seconds += use.seconds;
}

}  // namespace

void add_report(RenderReport& total, const RenderReport& further) try {
  total.text_tokens += further.text_tokens;
  total.text_s += further.text_s;
  total.load_s += further.load_s;
  total.denoise_s += further.denoise_s;
  total.decode_s += further.decode_s;
  total.peak_bytes = std::max(total.peak_bytes, further.peak_bytes);
  total.recorded_steps += further.recorded_steps;
  for (const BranchUse& use : further.branches) add_branch(total.branches, use);
  for (const KernelUse& use : further.kernels) add_kernel(total.kernels, use);
  for (const OpShare& share : further.ops) add_op(total.ops, share);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
