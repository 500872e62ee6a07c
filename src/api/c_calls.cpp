// The operations of octet/operations.h on another framework's streams, memory and weights.
#include "api/c_device.h"
#include "backend/host_backend.h"

namespace octet::c_api {
namespace {

constexpr int64_t kAlignment = Caller::kAlignment;

// Calls work(backend, stepwise) with exclusive use of a device's backend, on behalf of this caller;
// it returns the kernel.
template <class Work>
octet_status for_caller(octet_device* device, octet_call* call, Work&& work) noexcept {
  return on_device(device, [&](Backend& backend) {
    const octet_call given = read_struct(call, "call");
    const bool is_host = keeps_data_on_host(backend);
    check_no_stream(backend, given.stream);
    check_value(is_host || given.memory != nullptr || given.memory_bytes == 0, "memory",
                "`memory` is NULL, but `memory_bytes` is {}", given.memory_bytes);
    check_value(is_host || reinterpret_cast<uintptr_t>(given.memory) % kAlignment == 0, "memory",
                "`memory` is at an address that is not a multiple of {}", kAlignment);
    check_reserved(given.reserved);
    Caller caller{.stream = given.stream,
                  .memory = static_cast<std::byte*>(given.memory),
                  .bytes = given.memory_bytes,
                  .allocate = given.allocate,
                  .user = given.user};
    const Visit visit(backend, caller);
    call->kernel = nullptr;
    // Names of kernels belong to the library and end in a NUL.
    const std::string_view kernel = work(backend, flag_of(given.stepwise, "stepwise"));
    call->kernel = kernel.empty() ? "" : kernel.data();
  });
}

ConstTensorView bias_of(const octet_plain_weight& weight) {
  if (weight.bias == nullptr) return {};
  const DType dtype = dtype_of(weight.bias_dtype, "bias");
  check_value(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16, "bias",
              "`bias_dtype` is {}, expected OCTET_F32, OCTET_BF16 or OCTET_F16", name_of(dtype));
  return {static_cast<const std::byte*>(weight.bias), dtype, {weight.n}};
}

PlainWeight plain_weight(const Backend& backend, const octet_plain_weight& weight) {
  check_extent(weight.n, "n", "weight");
  check_extent(weight.k, "k", "weight");
  const int64_t stride = weight.row_stride == 0 ? weight.k : weight.row_stride;
  check_extent(stride, "row_stride", "weight");
  check_value(stride >= weight.k, "row_stride",
              "`row_stride` of `weight` is {}, fewer bytes than its k={}", stride, weight.k);
  check_value(weight.codes != nullptr || weight.n == 0 || weight.k == 0, "codes",
              "`codes` of `weight` is NULL");
  check_value(weight.scale_count == weight.n || weight.scale_count == 1, "scale_count",
              "`scale_count` is {}, expected 1 or n={}", weight.scale_count, weight.n);
  const TensorView scales = vector_of(weight.scales, weight.scale_count, "scales");
  if (keeps_data_on_host(backend)) {  // a GPU would have to be waited for
    check_finite(weight.scales, weight.scale_count, "scales");
    check_finite(weight.smooth, weight.k, "smooth");
  }
  const bool gated = flag_of(weight.gate_up, "gate_up");
  return {.codes = ConstTensorView::rows(reinterpret_cast<const std::byte*>(weight.codes),
                                         DType::i8, weight.n, weight.k, stride),
          .scales = scales,
          .bias = bias_of(weight),
          .transform = transform_of(weight.smooth, weight.rotation_group, weight.k),
          .order = gated ? RowOrder::gate_up : RowOrder::plain};
}

// The weight of a call, one of two kinds.
class WeightOfCall {
 public:
  WeightOfCall(Backend& backend, const octet_device& device, const octet_plain_weight* plain,
               const octet_weight* packed) {
    check_value((plain != nullptr) != (packed != nullptr), "weight",
                "`weight` and `packed` are both {}, expected one of them",
                plain == nullptr ? "NULL" : "given");
    if (packed != nullptr) {
      weight_ = &weight_for(device, packed);
    } else {
      borrowed_ = backend.borrow(plain_weight(backend, read_struct(plain, "weight")));
      weight_ = &borrowed_;
    }
  }
  const QWeight& operator*() const { return *weight_; }
  const QWeight* operator->() const { return weight_; }

  Fusion fusion(DType out) const {
    if (weight_->gated) return Fusion::swiglu;
    return weight_->bias && out != DType::i32 ? Fusion::bias : Fusion::none;
  }

 private:
  QWeight borrowed_;
  const QWeight* weight_ = nullptr;
};

}  // namespace
}  // namespace octet::c_api

namespace c_api = octet::c_api;

size_t octet_linear_memory(int64_t m, int64_t k) {
  if (m <= 0 || k <= 0 || m > c_api::kLargestExtent || k > c_api::kLargestExtent) return 0;
  return static_cast<size_t>(octet::round_up(m * k, c_api::kAlignment) +
                             octet::round_up(m * 4, c_api::kAlignment));
}

octet_status octet_call_quantize_rows(octet_device* device, octet_call* call, const octet_matrix* x,
                                      const float* smooth, int64_t rotation_group,
                                      const octet_matrix* codes, float* scales) {
  return c_api::for_caller(device, call, [&](octet::Backend& backend, bool stepwise) {
    const octet::TensorView from = c_api::view_of(x, "x");
    auto transform = c_api::transform_of(smooth, rotation_group, from.shape[1]);
    transform.stepwise = stepwise;
    backend.quantize_rows(
        from, transform,
        {c_api::view_of(codes, "codes"), c_api::vector_of(scales, from.shape[0], "scales")});
    return std::string_view();
  });
}

octet_status octet_call_linear_int8(octet_device* device, octet_call* call,
                                    const octet_plain_weight* weight, const octet_weight* packed,
                                    const octet_matrix* codes, const float* scales,
                                    const octet_matrix* y) {
  return c_api::for_caller(device, call, [&](octet::Backend& backend, bool) {
    const c_api::WeightOfCall with(backend, *device, weight, packed);
    const octet::TensorView values = c_api::view_of(codes, "codes");
    const octet::TensorView out = c_api::view_of(y, "y");
    return backend.gemm(
        {{values, c_api::vector_of(scales, values.shape[0], "scales")}, &*with, out},
        with.fusion(out.dtype));
  });
}

octet_status octet_call_linear(octet_device* device, octet_call* call,
                               const octet_plain_weight* weight, const octet_weight* packed,
                               const octet_matrix* x, const octet_matrix* y) {
  return c_api::for_caller(device, call, [&](octet::Backend& backend, bool stepwise) {
    const octet::TensorView from = c_api::view_of(x, "x");
    const octet::TensorView out = c_api::view_of(y, "y");
    const int64_t m = from.shape[0], k = from.shape[1];
    c_api::check_rows(out, m);
    // Before the weight, which may need memory, too: the caller's memory was sized for these.
    const octet::Buffer values = backend.allocate(octet::bytes_of(octet::DType::i8, {m, k}));
    const octet::Buffer row_scales = backend.allocate(octet::bytes_of(octet::DType::f32, {m}));
    const octet::QTensor quantized = {values.view(octet::DType::i8, {m, k}),
                                      row_scales.view(octet::DType::f32, {m})};
    const c_api::WeightOfCall with(backend, *device, weight, packed);
    octet::check_value(k == with->k, "x", "`x` has {} columns, but the weight has k={}", k,
                       with->k);
    octet::ActivationTransform transform = with->transform;
    transform.stepwise = stepwise;
    backend.quantize_rows(from, transform, quantized);
    return backend.gemm({quantized, &*with, out}, with.fusion(out.dtype));
  });
}
