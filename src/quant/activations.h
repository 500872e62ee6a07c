// What went into the linears of a model while it ran: how far each channel reaches, and some rows
// to measure errors with. Kept in a safetensors file, so that it is made once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace octet::quant {

struct LinearInputs {
  int64_t k = 0;
  uint64_t rows_seen = 0;
  std::vector<float> amax;  // [k]: the largest magnitude of each channel
  std::vector<float> rows;  // [count, k]: some of the rows, spread over all that were seen

  int64_t row_count() const { return k == 0 ? 0 : static_cast<int64_t>(rows.size()) / k; }
};

// By the name of the linear (nn::Linear::name), behind that of its network and a dot:
// "conditional.layers.3.attention.qkv".
using ActivationStatistics = std::map<std::string, LinearInputs>;

// A file that appears whole or not at all: `<name>.amax` F32 [k], `<name>.rows` F32 [count, k].
void write_statistics(const std::string& path, const ActivationStatistics& statistics,
                      const std::map<std::string, std::string>& metadata = {});
// Throws Error for anything else than what write_statistics() writes: shapes that do not agree,
// numbers that are not finite, negative magnitudes.
ActivationStatistics read_statistics(const std::string& path);

// The largest magnitude of each channel of rows [count, k].
std::vector<float> column_amax(std::span<const float> rows, int64_t k);

// Rows as a transformer's linears are known to see them, without running one: normally distributed,
// with one channel in a hundred thirty times as large. Depends only on the name.
LinearInputs synthetic_inputs(const std::string& name, int64_t k, int64_t rows);

}  // namespace octet::quant
