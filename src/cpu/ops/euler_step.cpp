#include <atomic>
#include <cmath>

#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

// Whether all of the new z are finite.
template <class T>
bool euler_row(const EulerStep& step, int64_t i) {
  const T* first = step.first.row<T>(i);
  const T* second = step.guided() ? step.second.row<T>(i) : nullptr;
  T* rounded = step.rounds() ? step.rounded.row<T>(i) : nullptr;
  float* z = step.z.row<float>(i);
  float* velocity = step.velocity.row<float>(i);
  const float guidance = step.guidance, against = step.against(), delta = step.delta;
  bool is_finite = true;
  for (int64_t j = 0; j < step.z.shape[1]; ++j) {
    float v = to_f32(first[j]);
    if (second != nullptr) v = guidance * v + against * to_f32(second[j]);
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
  const auto row = step.first.dtype == DType::bf16 ? euler_row<bf16_t> : euler_row<float>;
  for_each_row(workers.pool, step.z.shape[0], step.z.shape[1], [&](int64_t i) {
    if (!row(step, i)) is_finite.store(false, std::memory_order_relaxed);
  });
  if (!is_finite) *step.overflow.as<int32_t>() = 1;
}

}  // namespace octet::cpu
