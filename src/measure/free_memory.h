// Whether the operands of a benchmark fit into memory.
#pragma once

#include <optional>
#include <string>

#include "backend/backend.h"

namespace octet::measure {

// False for a device with memory of its own: there the host only holds what is on its way.
bool keeps_data_on_host(const Backend& backend);

// Memory of the host that can be taken without swapping, or nothing when Linux does not say.
std::optional<double> available_bytes();

// Linux hands out memory that it does not have and kills whoever touches it: count first. Throws
// Error, beginning with `what`, when fewer than `bytes` are free.
void check_free_memory(const std::string& what, double bytes);

}  // namespace octet::measure
