// Random operands whose every element is a function of its place: the exact product can be computed
// from any element without keeping a second copy, and the number of threads that fill a matrix does
// not show in it.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "base/thread_pool.h"

namespace octet::measure {

using ElementAt = float (*)(int64_t row, int64_t column, int64_t k);

// A few of the channels are much larger than the rest, as those of a transformer are.
float activation(int64_t row, int64_t column, int64_t k);

float weight(int64_t row, int64_t column, int64_t k);

// dtype: BF16 or F32. The matrix [rows, k] in the backend's memory.
Buffer random_matrix(Backend& backend, DType dtype, int64_t rows, int64_t k, ElementAt element);

}  // namespace octet::measure
