// Converts stored floats to the types that ops take.

#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

struct f8_t {
  uint8_t code;
};

// A factor of 1 changes only the bits of a NaN, which do not count.
template <class In, class Out>
void convert_row(const std::byte* from, int64_t count, float scale, std::byte* to) {
  const auto* in = reinterpret_cast<const In*>(from);
  auto* out = reinterpret_cast<Out*>(to);
  if constexpr (std::is_same_v<In, f8_t>) {
    const float* values = f8_e4m3_values().data();
    for (int64_t j = 0; j < count; ++j) out[j] = from_f32<Out>(values[in[j].code] * scale);
  } else {
    for (int64_t j = 0; j < count; ++j) out[j] = from_f32<Out>(to_f32(in[j]) * scale);
  }
}

using ConvertRow = void (*)(const std::byte*, int64_t, float, std::byte*);

template <class Out>
ConvertRow converter_from(DType type) {
  switch (type) {
    case DType::f8_e4m3: return convert_row<f8_t, Out>;
    case DType::f16: return convert_row<f16_t, Out>;
    case DType::bf16: return convert_row<bf16_t, Out>;
    default: return convert_row<float, Out>;
  }
}

}  // namespace

void convert(const Workers& workers, const ConstTensorView& x, const TensorView& out,
             const ConstTensorView& row_scale) {
  const ConvertRow row =
      out.dtype == DType::bf16 ? converter_from<bf16_t>(x.dtype) : converter_from<float>(x.dtype);
  for_each_row(workers.pool, x.shape[0], x.shape[1], [&](int64_t i) {
    const float scale = row_scale.data == nullptr ? 1 : row_scale.as<float>()[i];
    row(row_bytes(x, i), x.shape[1], scale, row_bytes(out, i));
  });
}

}  // namespace octet::cpu
