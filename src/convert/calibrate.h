// Calibration: runs captions through a model in floating point and gathers what goes into each
// linear of its networks.
//
// Blocks that do not fit into memory are read again for each forward. The work can be interrupted
// at any moment and goes on behind the last step that was saved, to the same result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/family.h"
#include "nn/context.h"
#include "octet/rendering.h"
#include "quant/activations.h"

namespace octet::convert {

// Captions from files, as the tokenizer of the family is to get them. A path is a file with one
// caption, a file with one in each line (its name ends with ".jsonl"; empty lines do not count), or
// a folder, whose files with the family's suffix are taken by name. Logs warnings about them.
// Throws Error, naming the file and the line, for a caption that is not valid, unless `any` will
// do, and for a path without any.
std::vector<std::string> read_captions(const models::Family& family,
                                       const std::vector<std::string>& paths, bool any = false);

struct CalibrateRequest {
  const models::Family* family = nullptr;
  // With only the first network, nothing is guided, and nothing is recorded of another.
  models::ModelFiles files;
  std::vector<std::string> captions;  // as the tokenizer is to get them: see read_captions()
  PictureSize size;
  models::ScheduleRequest schedule;  // its size and convention are those of the request
  Convention convention = Convention::official;
  uint64_t seed = 0;  // of the noise; each caption has its own
  int64_t rows = 64;  // that are kept of each linear

  uint64_t max_memory = 0;   // bytes, see memory_for(); 0: all blocks stay in memory
  std::string state_path;    // see calibration_job.h; empty: nothing is kept
  double save_every_s = 20;  // steps may be faster than the disk; 0: after each
};

// Bytes that a calibration takes with all blocks in memory, and with one at a time: weights, and
// about what the networks work with.
struct CalibrateMemory {
  uint64_t most = 0, least = 0;
};
CalibrateMemory memory_for(const CalibrateRequest& request, DType dtype);

// The statistics of all linears, under the name of their network, a dot and nn::Linear::name, and
// the same in the file at state_path; at once, when it is there. `on_progress` is told about text,
// load (blocks) and denoise (steps of all captions). When it stops the work, what is done is saved.
quant::ActivationStatistics calibrate(nn::Context& ctx, const CalibrateRequest& request,
                                      const OnRenderProgress& on_progress = {});

}  // namespace octet::convert
