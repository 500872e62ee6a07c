// Whether the operands of a benchmark fit into memory.
#pragma once

#include <string>

namespace octet::measure {

// Linux hands out memory that it does not have and kills whoever touches it: count first. Throws
// Error, beginning with `what`, when fewer than `bytes` are free.
void check_free_memory(const std::string& what, double bytes);

}  // namespace octet::measure
