// Everything about a calibration that is known before weights are read: the request, checked, and
// the memory that it takes. And how far it is.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "convert/calibrate.h"
#include "quant/activations.h"

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
  // The prefix of the names of its linears in the statistics, with a dot.
  std::string name_of_network(size_t network) const {
    return std::string(request.family->networks[network].name);
  }
  int64_t latent_channels() const { return model.networks.front()->latent_channels(); }
  size_t elements() const { return static_cast<size_t>(grid.tokens() * latent_channels()); }
  // All units of a network but the first and the last, which stay in memory.
  int64_t blocks(size_t network) const { return model.networks[network]->pass_units() - 2; }

  // Tells jobs apart whose results differ: files are known by identity_of().
  std::string key(ThreadPool& pool) const;
  // k of each linear, by its name in the statistics.
  std::map<std::string, int64_t> input_widths() const;
  CalibrateMemory memory() const;
  uint64_t block_bytes() const;  // of the largest block in memory
};

// --- how far it is

// How far a calibration is, as a file: the statistics so far and, in the middle of a caption, its
// latent. It is replaced as a whole, so that a program that is killed leaves the state before or
// the one after.
//
// A file belongs to one job. That of another job, which may have taken hours, and a file that is no
// state at all are never touched: reading them is an Error. Only a job that ended before its first
// step is as good as none.
struct CalibrationState {
  int64_t captions = 0;       // done
  int64_t steps = 0;          // of the next one
  std::vector<float> latent;  // F32 [tokens, channels] after them; empty before the first
  quant::ActivationStatistics statistics;
  bool complete = false;  // all captions are done
};

// With all captions done, this is the file that quant::read_statistics() reads.
void write_state(const std::string& path, const std::string& job, int64_t latent_channels,
                 CalibrationState& state);

// Whether the statistics in a file are all that was to be gathered; also for files of other makers.
bool is_complete(const std::string& path);

// The beginning, when there is no file or one of another job without a step.
CalibrationState read_state(const std::string& path, const std::string& job);

}  // namespace octet::convert
