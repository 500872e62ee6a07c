// Where a model's weights go on a device with so much memory, and how long a step takes then.
// Nothing is loaded, and the device need not be there. Times are predicted and must be shown as
// such.
//
//   octet::PlanRequest request;
//   request.card = "rtx3060";
//   for (const octet::BudgetPlan& plan : octet::plan_memory(request).plans) { ... }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/model_options.h"
#include "octet/picture.h"
#include "octet/rendering.h"

namespace octet {

struct PlanRequest {
  // Of these the model and its parts, linears, attention, activations, `keep`, and `max_memory`;
  // without a model: the published one. `max_memory` 0: all of kPlanBudgets.
  ModelOptions model;
  PictureSize size = {};  // 0 x 0: the model's usual size
  int text_tokens = 512;  // that a step sees
  // From known_cards(), or as drivers call it; empty: this machine's first GPU. Of its memory
  // nothing is asked.
  std::string card;
  std::string card_file;  // of a user's card instead: docs/deployment-map.md
};

// GB, 10^9 bytes.
inline constexpr int kPlanBudgets[] = {6, 8, 10, 12, 16, 24, 32, 48, 80};

// For one picture. All bytes but those of `host_bytes` and `file_bytes` are of the device.
struct BudgetPlan {
  uint64_t memory_bytes = 0;        // the budget
  uint64_t least_bytes = 0;         // the smallest budget that works; 0: this one is enough for all
  bool fits = false;                // what follows is a plan only then
  std::vector<PartPlace> plan;      // as EngineInfo::plan
  int layers = 0, layers_here = 0;  // of the networks, and those that stay on the device
  uint64_t weight_bytes = 0;        // that stay
  uint64_t host_bytes = 0;          // of weights, in pinned memory: what the host needs
  uint64_t file_bytes = 0;          // of weights that are read for each use
  uint64_t buffer_bytes = 0;        // for weights that come and go
  // Whole passes work on all rows of activations; 0. A budget that is too small for them: on so
  // many at a time, which may give other bits.
  int64_t rows_at_once = 0;
  uint64_t work_bytes = 0;      // of a step: activations
  uint64_t context_bytes = 0;   // of the GPU and its kernels, as on an H200
  uint64_t streamed_bytes = 0;  // that come in each step
  uint64_t read_bytes = 0;      // of these, from files
  // Predicted; 0: nobody knows, as without a card, for other sizes of networks than the published
  // ones, and where a step reads files.
  double step_ms = 0;
};

struct MemoryPlans {
  std::string model;  // empty: the published one
  std::string card;   // its name; empty: unknown
  PictureSize size;
  int text_tokens = 0;
  double host_gbs = 0;     // predicted: of copies to the card
  double resident_ms = 0;  // predicted: of a step if everything is on the card; 0: nobody knows
  std::vector<BudgetPlan> plans;
};

// The host is taken to have room for all that waits there. Throws InvalidRequest for an unknown
// card, a size that makes no sense and a rule about a part that there is not.
OCTET_API MemoryPlans plan_memory(const PlanRequest& request);

// Predicted, of a step by the plan of an engine that may not be loaded yet. 0: nobody knows, as for
// two devices.
OCTET_API double predicted_step_ms(const EngineInfo& info, const ModelOptions& options,
                                   PictureSize size);

}  // namespace octet
