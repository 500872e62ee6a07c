// CSV of Nsight Compute: `ncu --csv`, one row for each kernel and metric, and `ncu --csv --page
// raw`, one row for each kernel.
#pragma once

#include <string>
#include <vector>

#include "audit/trace.h"
#include "formats/byte_stream.h"

namespace octet::audit {

bool is_nsight_compute_header(const std::vector<std::string>& cells);

// Kernels with their durations (0 where none was measured) and, where they were, the instructions
// or operations of tensor cores by type. Lines of the program that was profiled may stand before.
Trace read_nsight_compute_csv(ByteStream& bytes);

}  // namespace octet::audit
