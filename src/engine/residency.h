// Where the weights of a model stay, unit by unit: a plan made from free memory before anything is
// loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/rendering.h"

namespace octet::engine {

// A unit as the plan sees it (models/part.h).
struct UnitNeed {
  uint64_t bytes = 0;
  bool prepares = false;  // is not needed during runs
};

// A part as the plan sees it.
struct PartNeed {
  std::string name;
  std::vector<UnitNeed> units;
  int visits = 0;     // in a step; 0: used before and after the steps
  bool once = false;  // used for one picture and never again

  uint64_t bytes() const;
  uint64_t largest_unit() const;
  // Of those that every run needs; small units before and behind them are none.
  bool is_layer(size_t unit) const;
};

struct MemoryAtHand {
  uint64_t device = 0;  // bytes that weights and work may take
  uint64_t host = 0;    // likewise, for what waits in host memory
  bool shared = false;  // the device's memory is the host's
  uint64_t work = 0;    // of the steps: activations
  // What comes before and after the steps takes, beside weights: activations of a text, images that
  // are decoded. Buffers and the steps' own work make room for it.
  uint64_t other_work = 0;
  // What a layer that is read from files takes on its way, beside itself.
  uint64_t landing = 0;
};

struct DevicePlan {
  std::vector<PartPlace> places;              // of parts, in their order
  std::vector<std::vector<Residency>> units;  // of each, by unit
  int buffers = 0;              // for units that come and go during the steps, see WeightStream
  uint64_t buffer_bytes = 0;    // of each
  uint64_t streamed_bytes = 0;  // that come to the device in a step
  uint64_t read_bytes = 0;      // of these, from files
  uint64_t taken = 0;           // of the device's memory, by all of this and the work
  uint64_t least = 0;           // that would be enough
  uint64_t at_hand = 0;         // of the device's memory, when the plan was made
};

// Networks get the device's memory first, then parts used once per picture, the smallest first.
// Where networks do not fit as a whole, their layers share it: those that a step visits more often
// first, else evenly spread over the step, so that copies of the others have time. What does not
// fit stays in host memory or, without room there, in its files. Rules come first and are followed
// as they are.
DevicePlan plan_residency(const std::vector<PartNeed>& parts, const std::vector<KeepRule>& rules,
                          const MemoryAtHand& memory);

// Throws InvalidRequest for a rule about a part that there is not.
void check_rules(const std::vector<KeepRule>& rules, const std::vector<PartNeed>& parts);

// "text_encoder streamed, transformer on the device"; with a device's name where there are two
std::string text_of(const std::vector<PartPlace>& plan);

}  // namespace octet::engine
