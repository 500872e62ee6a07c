// How far a calibration is, as a file: the statistics so far and, in the middle of a caption, its
// latent. It is replaced as a whole, so that a program that is killed leaves the state before or
// the one after.
//
// A file belongs to one job. That of another job that did not end is as good as none: it is
// replaced. One that did end, which may have taken hours, and a file that is no state at all are
// never touched: reading them is an Error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quant/activations.h"

namespace octet::convert {

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

// The beginning, when there is no file or one of another job that did not end.
CalibrationState read_state(const std::string& path, const std::string& job);

}  // namespace octet::convert
