// One device's share of the steps: the networks of its branches, and what they keep from one
// picture for the next. A session has one, or two that work at the same time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/kept_kernels.h"
#include "engine/part_store.h"
#include "engine/preparations.h"
#include "engine/weight_stream.h"
#include "engine/work_bytes.h"
#include "models/family.h"

namespace octet::engine {

// The branches of each of `devices`, which are one or two: the first has the first branch, the
// second all others. A step that is guided as usual has two.
std::vector<std::vector<size_t>> shares_of(const models::Family& family, size_t devices);

struct Denoiser {
  Denoiser(const nn::Context& context, const models::Family& family,
           std::vector<size_t> its_branches)
      : ctx(context),
        branches(std::move(its_branches)),
        preparations(family.branches.size(), family.networks.size()) {}

  Backend& backend() const { return ctx.backend; }
  bool has(size_t branch) const;

  nn::Context ctx;               // nobody watches
  std::vector<size_t> branches;  // of the family
  // By the family's numbers: networks, and where their weights are.
  std::map<size_t, models::Network*> networks;
  std::map<size_t, std::unique_ptr<PartStore>> stores;
  WorkBytes work;
  WorkBytes least_work;  // by passes of a few rows at a time; known with a budget
  // For networks of which some layers do not stay on the device; else null.
  std::unique_ptr<WeightStream> stream;
  models::Extent planned;  // the pictures that its memory was planned for
  Preparations preparations;
  KeptKernels kernels;
};

}  // namespace octet::engine
