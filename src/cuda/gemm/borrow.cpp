#include "cuda/gemm/borrow.h"

#include "base/checked.h"
#include "cuda/check.h"
#include "cuda/gemm/pack.h"

namespace octet::cuda {
namespace {

// A view of memory that is not released here.
Buffer look_at(const ConstTensorView& view, size_t bytes) {
  return {const_cast<std::byte*>(view.data), bytes, {}};
}

// One number for each column, as the epilogue reads them.
Buffer columns(Device& device, const ConstTensorView& from, int64_t n, bool gated) {
  const bool ready = from.dtype == DType::f32 && !gated && n % 8 == 0 && from.shape[0] == n &&
                     reinterpret_cast<uintptr_t>(from.data) % 16 == 0;
  const size_t bytes = bytes_of(DType::f32, {round_up(n, 8)});
  if (ready) return look_at(from, bytes);
  Buffer copy = device.allocate(bytes);
  launch_spread_columns(from, n, gated, reinterpret_cast<float*>(copy.data()), device.stream());
  check_launch("spreading numbers of columns");
  return copy;
}

Buffer packed_values(Device& device, const PlainWeight& weight, bool gated) {
  const int64_t n = weight.codes.shape[0], k = weight.codes.shape[1];
  const auto bytes = static_cast<size_t>(packed_bytes(n, k));
  Buffer values = device.allocate(bytes);
  // Places to which no row is copied.
  if (k == 0 || n != packed_rows(n)) {
    check_cuda(cudaMemsetAsync(values.data(), 0, bytes, device.stream()), "clearing");
  }
  launch_pack_codes(weight.codes,
                    {.values = reinterpret_cast<int8_t*>(values.data()),
                     .col_scale = nullptr,
                     .n = n,
                     .k = k,
                     .first = 0,
                     .gated = gated},
                    device.stream());
  check_launch("packing a weight");
  return values;
}

}  // namespace

QWeight borrow_weight(Device& device, const PlainWeight& weight) {
  QWeight borrowed;
  borrowed.n = weight.codes.shape[0];
  borrowed.k = weight.codes.shape[1];
  borrowed.gated = weight.order == RowOrder::gate_up;
  borrowed.transform = weight.transform;
  if (can_stay_plain(weight)) {
    borrowed.layout = kPlainLayout;
    borrowed.row_stride = weight.codes.row_stride();
    borrowed.values = look_at(weight.codes, static_cast<size_t>(borrowed.n * borrowed.row_stride));
  } else {
    borrowed.layout = kWeightLayout;
    borrowed.values = packed_values(device, weight, borrowed.gated);
  }
  borrowed.col_scale = columns(device, weight.scales, borrowed.n, borrowed.gated);
  if (weight.bias.data != nullptr) {
    borrowed.bias = columns(device, weight.bias, borrowed.n, false);
  }
  return borrowed;
}

}  // namespace octet::cuda
