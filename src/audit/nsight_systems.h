// What Nsight Systems exports: CSV of `nsys stats`, and SQLite.
#pragma once

#include <string>
#include <vector>

#include "audit/trace.h"
#include "formats/byte_stream.h"

namespace octet::audit {

// Whether these cells are the header of a table of kernels: cuda_gpu_kern_sum,
// cuda_gpu_kern_gb_sum, cuda_gpu_sum, cuda_gpu_trace, cuda_kern_exec_trace, and the names that
// these had before.
bool is_nsight_systems_header(const std::vector<std::string>& cells);

// The first table of kernels in the text, and the sums of transfers where that has none. Tables of
// other reports are passed over.
Trace read_nsight_systems_csv(ByteStream& bytes);

// The SQLite file of `nsys export` (or beside the report of `nsys profile --stats`): kernels and
// transfers, and ranges of NVTX, with the ones that launched kernels.
Trace read_nsight_systems_sqlite(const std::string& path);

}  // namespace octet::audit
