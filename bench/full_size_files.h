// Full-size files of random numbers, for timing loads.
#pragma once

#include <filesystem>
#include <string>

#include "base/thread_pool.h"

namespace octet::bench {

// `kind`: int8, fp8, text_fp8 or text_bf16, or a whole model: model_int8, model_fp8. `layers`: of a
// network.
void write_full_size(const std::string& kind, const std::filesystem::path& folder, int64_t layers,
                     ThreadPool& pool);

}  // namespace octet::bench
