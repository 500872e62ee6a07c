#include "measure/random_matrix.h"

#include <algorithm>

#include "base/checked.h"
#include "base/random_value.h"

namespace octet::measure {
namespace {

constexpr uint64_t kActivationSeed = 1;
constexpr uint64_t kWeightSeed = 2;

template <class T>
void fill_row(T* to, int64_t row, int64_t k, ElementAt element) {
  for (int64_t j = 0; j < k; ++j) to[j] = from_f32<T>(element(row, j, k));
}

}  // namespace

float activation(int64_t row, int64_t column, int64_t k) {
  const float value = random_value(kActivationSeed, static_cast<uint64_t>(row * k + column));
  return column % 192 == 7 ? 8.0f * value : value;
}

float weight(int64_t row, int64_t column, int64_t k) {
  return 0.02f * random_value(kWeightSeed, static_cast<uint64_t>(row * k + column));
}

Buffer random_matrix(Backend& backend, DType dtype, int64_t rows, int64_t k, ElementAt element) {
  constexpr int64_t kElementsPerTask = 32 * 1024;  // enough to outweigh taking a task
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(k, 1));
  Buffer host = allocate_host(bytes_of(dtype, {rows, k}));
  const TensorView view = host.view(dtype, {rows, k});
  backend.pool().run(ceil_div(rows, rows_per_task), [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < end; ++row) {
      if (dtype == DType::bf16) {
        fill_row(view.row<bf16_t>(row), row, k, element);
      } else {
        fill_row(view.row<float>(row), row, k, element);
      }
    }
  });
  Buffer device = backend.allocate(host.bytes());
  backend.copy_to_device(device.data(), host.data(), host.bytes());
  return device;
}

}  // namespace octet::measure
