// Where the parts of a model stay: a plan made from free memory before anything is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/rendering.h"

namespace octet::engine {

// A part as the plan sees it.
struct PartNeed {
  std::string name;
  uint64_t bytes = 0;         // of all of its weights
  uint64_t largest_unit = 0;  // on the device for a moment if the part does not stay
  bool runs_often = false;    // in every step: a network
  bool once = false;          // used for one picture and never again
};

struct MemoryAtHand {
  uint64_t device = 0;  // bytes that weights and work may take
  uint64_t host = 0;    // likewise, for parts that stay in host memory
  bool shared = false;  // the device's memory is the host's
  uint64_t work = 0;    // for activations
};

// Networks get the device's memory first, then parts used once per picture, the smallest first.
// What does not fit stays in host memory or, without room there, in its files. Rules come first and
// are followed as they are.
std::vector<PartPlace> plan_residency(const std::vector<PartNeed>& parts,
                                      const std::vector<KeepRule>& rules,
                                      const MemoryAtHand& memory);

// Throws InvalidRequest for a rule about a part that there is not.
void check_rules(const std::vector<KeepRule>& rules, const std::vector<PartNeed>& parts);

// "text_encoder streamed, transformer on the device"; with a device's name where there are two
std::string text_of(const std::vector<PartPlace>& plan);

}  // namespace octet::engine
