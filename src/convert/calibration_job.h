// Everything about a calibration that is known before weights are read: the request, checked, and
// the memory that it takes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "convert/calibrate.h"

namespace octet::convert {

struct CalibrationJob {
  // Throws Error when the model does not fit together or the request makes no sense.
  CalibrationJob(const CalibrateRequest& request, DType dtype);

  const CalibrateRequest& request;
  DType dtype;  // of activations and weights
  models::Model model;
  std::vector<std::vector<int32_t>> tokens;  // of each caption
  models::Grid grid;
  models::Schedule schedule;
  std::vector<int32_t> negative_tokens;  // of an empty negative prompt, where a branch sees one

  int64_t captions() const { return std::ssize(tokens); }
  int64_t steps() const { return captions() * schedule.steps(); }  // of all captions
  size_t networks() const { return model.networks.size(); }
  std::span<const models::Branch> branches() const { return request.family->branches; }
  // Of a network, in the first `steps` of one caption.
  int64_t runs(size_t network, int steps) const {
    return models::runs_of_network(branches(), network, schedule, steps);
  }
  // What stands before the names of its linears in the statistics, with a dot.
  std::string name_of_network(size_t network) const {
    return std::string(request.family->networks[network].name);
  }
  int64_t latent_channels() const { return model.networks.front()->latent_channels(); }
  size_t elements() const { return static_cast<size_t>(grid.tokens() * latent_channels()); }
  // All units of a network but the first and the last, which stay in memory.
  int64_t blocks(size_t network) const { return model.networks[network]->unit_count() - 2; }

  // Tells jobs apart whose results differ: files are known by identity_of().
  std::string key(ThreadPool& pool) const;
  // k of each linear, by its name in the statistics.
  std::map<std::string, int64_t> input_widths() const;
  CalibrateMemory memory() const;
  uint64_t block_bytes() const;  // of the largest block in memory
};

}  // namespace octet::convert
