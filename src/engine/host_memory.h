// What a plan has to know where the host's memory is the device's: other things are in it, too, and
// Linux does not refuse what it does not have, but kills the process later.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/residency.h"

namespace octet::engine {

// Of `free` bytes, those that weights and work may have. The rest is for what nobody counts: the
// program, its threads, the workspaces of kernels, texts and pictures.
uint64_t free_for_model(uint64_t free);

// Of weights on their way, as they are read, next to what is made of them.
uint64_t loading_bytes(const std::vector<PartNeed>& parts);

// Throws OutOfMemory if the plan takes more than there is, which only rules and a lack of room for
// a single layer can cause.
void check_host_memory(const DevicePlan& plan, uint64_t free);

}  // namespace octet::engine
