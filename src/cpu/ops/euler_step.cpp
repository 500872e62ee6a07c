#include <atomic>
#include <cmath>

#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

// Whether all values of the new z are finite.
template <class T>
bool euler_row(const EulerStep& step, int64_t i) {
  const T* velocities[kMostBranches] = {};
  float weights[kMostBranches] = {};
  for (size_t b = 0; b < step.count; ++b) {
    velocities[b] = step.branches[b].velocity.row<T>(i);
    weights[b] = step.branches[b].weight;
  }
  T* rounded = step.rounds() ? step.rounded.row<T>(i) : nullptr;
  float* z = step.z.row<float>(i);
  float* velocity = step.velocity.row<float>(i);
  const float delta = step.delta;
  bool is_finite = true;
  for (int64_t j = 0; j < step.z.shape[1]; ++j) {
    float v = weights[0] * to_f32(velocities[0][j]);
    for (size_t b = 1; b < step.count; ++b) v = v + weights[b] * to_f32(velocities[b][j]);
    z[j] = z[j] + delta * v;
    velocity[j] = v;
    if (rounded != nullptr) rounded[j] = from_f32<T>(z[j]);
    is_finite = is_finite && std::isfinite(z[j]);
  }
  return is_finite;
}

}  // namespace

void euler_step(const Workers& workers, const EulerStep& step) {
  std::atomic<bool> is_finite{true};
  const auto row = step.dtype() == DType::bf16 ? euler_row<bf16_t> : euler_row<float>;
  for_each_row(workers.pool, step.z.shape[0], step.z.shape[1], [&](int64_t i) {
    if (!row(step, i)) is_finite.store(false, std::memory_order_relaxed);
  });
  if (!is_finite) *step.overflow.as<int32_t>() = 1;
}

}  // namespace octet::cpu
