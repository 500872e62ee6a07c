// How far a calibration is, as a file: the statistics so far and, in the middle of a caption, its
// latent. It is replaced as a whole, so that a program that is killed leaves the state before or
// the one after.
//
// A file belongs to one job. That of another job is as good as none: it is replaced. A file that is
// no state at all is never touched: reading it is an Error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quant/activations.h"

namespace octet::pipeline {

struct CalibrationState {
  int64_t captions = 0;       // done
  int64_t steps = 0;          // of the next one
  std::vector<float> latent;  // F32 [tokens, channels] after them; empty before the first
  quant::ActivationStatistics statistics;
};

// With all captions done, this is the file that quant::read_statistics() reads.
void write_state(const std::string& path, const std::string& job, int64_t latent_channels,
                 CalibrationState& state);

// The beginning, when there is no file or one of another job.
CalibrationState read_state(const std::string& path, const std::string& job);

}  // namespace octet::pipeline
