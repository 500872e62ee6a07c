// Everything about a calibration that is known before weights are read: the request, checked, and
// the memory that it takes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "convert/calibrate.h"
#include "models/ideogram4/model_parts.h"

namespace octet::convert {

// What stands before the names of linears in the statistics, with a dot.
inline constexpr const char* kConditional = "conditional";
inline constexpr const char* kUnconditional = "unconditional";

struct CalibrationJob {
  // Throws Error when the model does not fit together or the request makes no sense.
  CalibrationJob(const CalibrateRequest& request, DType dtype);

  const CalibrateRequest& request;
  DType dtype;  // of activations and weights
  ideogram4::ModelParts parts;
  std::vector<std::vector<int32_t>> tokens;  // of each caption
  int64_t grid_height = 0, grid_width = 0;
  ideogram4::Schedule schedule;
  int64_t guided_steps = 0;  // of one caption

  int64_t captions() const { return std::ssize(tokens); }
  int64_t steps() const { return captions() * schedule.steps(); }  // of all captions
  int64_t branches() const { return request.conditional_only ? 1 : 2; }
  int64_t image_tokens() const { return grid_height * grid_width; }
  size_t elements() const {
    return static_cast<size_t>(image_tokens() * parts.dit.latent_channels);
  }

  // Tells jobs apart whose results differ: files are known by identity_of().
  std::string key(ThreadPool& pool) const;
  // k of each linear, by its name in the statistics.
  std::map<std::string, int64_t> input_widths() const;
  CalibrateMemory memory() const;
  uint64_t block_bytes() const;  // of one block in memory
};

}  // namespace octet::convert
