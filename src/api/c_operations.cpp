// The operations of octet/operations.h: quantizing rows and INT8 linears on the caller's pointers.
#include <memory>

#include "api/c_device.h"
#include "backend/host_backend.h"
#include "devices/select.h"

namespace octet::c_api {
namespace {

tune::TuneMode tune_mode(int32_t tuning) {
  switch (tuning) {
    case OCTET_TUNE_MISSING: return tune::TuneMode::missing;
    case OCTET_TUNE_OFF: return tune::TuneMode::off;
    case OCTET_TUNE_ALL: return tune::TuneMode::all;
    default: break;
  }
  throw InvalidRequest(
      "tuning", sentence("`tuning` is {}, expected OCTET_TUNE_MISSING, _OFF or _ALL", tuning));
}

Fusion fusion_of(int32_t fusion) {
  switch (fusion) {
    case OCTET_FUSION_NONE: return Fusion::none;
    case OCTET_FUSION_BIAS: return Fusion::bias;
    case OCTET_FUSION_SWIGLU: return Fusion::swiglu;
    default: break;
  }
  throw InvalidRequest(
      "fusion", sentence("`fusion` is {}, expected OCTET_FUSION_NONE, _BIAS or _SWIGLU", fusion));
}

// An argument of pack(), which takes host memory: the caller's, or a copy from the device.
class HostRows {
 public:
  HostRows(Backend& backend, bool on_host) : backend_(backend), copies_(!on_host) {
    if (keeps_data_on_host(backend)) copies_ = false;
    if (copies_) backend.synchronize();  // earlier work may still write there
  }

  template <class T>
  const T* operator()(const T* from, size_t bytes) {
    if (!copies_ || from == nullptr) return from;
    Buffer& copy = buffers_[count_++];
    copy = allocate_host(bytes);
    backend_.copy_to_host(copy.data(), reinterpret_cast<const std::byte*>(from), bytes);
    return reinterpret_cast<const T*>(copy.data());
  }

 private:
  Backend& backend_;
  bool copies_;
  Buffer buffers_[4];
  size_t count_ = 0;
};

QWeight packed_weight(Backend& backend, const octet_weight_rows& rows) {
  check_extent(rows.n, "n", "rows");
  check_extent(rows.k, "k", "rows");
  const int64_t n = rows.n, k = rows.k;
  check_value(rows.codes != nullptr || n == 0 || k == 0, "codes", "`codes` is NULL");
  HostRows on_host(backend, flag_of(rows.on_host, "on_host"));
  const size_t row_bytes = bytes_of(DType::f32, {n});
  const int8_t* codes = on_host(rows.codes, bytes_of(DType::i8, {n, k}));
  const float* scales = on_host(rows.scales, row_bytes);
  const float* bias = on_host(rows.bias, row_bytes);
  const float* smooth = on_host(rows.smooth, bytes_of(DType::f32, {k}));
  const TensorView values = {
      reinterpret_cast<std::byte*>(const_cast<int8_t*>(codes)), DType::i8, {n, k}};
  ConstTensorView addends;
  if (bias != nullptr) addends = vector_of(bias, n, "bias");
  const TensorView factors = vector_of(scales, n, "scales");
  check_finite(scales, n, "scales");
  check_finite(smooth, k, "smooth");
  QWeight packed =
      backend.pack({values, factors}, addends, transform_of(smooth, rows.rotation_group, k),
                   flag_of(rows.gate_up, "gate_up") ? RowOrder::gate_up : RowOrder::plain);
  backend.synchronize();
  return packed;
}

}  // namespace
}  // namespace octet::c_api

namespace c_api = octet::c_api;

octet_status octet_device_open(const char* name, void* stream, int32_t threads, int32_t tuning,
                               octet_device** device) {
  if (device != nullptr) *device = nullptr;
  return c_api::guarded([&] {
    c_api::check_given(device, "device");
    c_api::check_given(name, "name");
    octet::check_value(threads >= 0, "threads", "`threads` is {}, expected 0 or more", threads);
    auto shared = std::make_shared<c_api::SharedDevice>();
    shared->backend = octet::select_backend(
        {.device = name, .threads = threads, .tune = c_api::tune_mode(tuning), .stream = stream});
    c_api::check_no_stream(*shared->backend, stream);
    shared->description = shared->backend->description();
    shared->watch.emplace(*shared->backend);
    *device = new octet_device{std::move(shared)};
  });
}

void octet_device_free(octet_device* device) {
  if (device == nullptr || !device->shared->is_of_this_process()) return;
  delete device;
}

octet_status octet_device_synchronize(octet_device* device) {
  return c_api::on_device(device, [](octet::Backend& backend) { backend.synchronize(); });
}

size_t octet_device_describe(const octet_device* device, char* text, size_t size) {
  return c_api::guarded_text(text, size, [&] { return c_api::shared_of(device)->description; });
}

size_t octet_last_kernel(const octet_device* device, char* text, size_t size) {
  return c_api::guarded_text(text, size, [&] {
    const auto shared = c_api::shared_of(device);
    const c_api::HeldDevice held(*shared);
    return shared->watch->kernel();
  });
}

octet_status octet_quantize_rows(octet_device* device, const octet_matrix* x, const float* smooth,
                                 int64_t rotation_group, const octet_matrix* codes, float* scales) {
  return c_api::on_device(device, [&](octet::Backend& backend) {
    const octet::TensorView from = c_api::view_of(x, "x");
    backend.quantize_rows(
        from, c_api::transform_of(smooth, rotation_group, from.shape[1]),
        {c_api::view_of(codes, "codes"), c_api::vector_of(scales, from.shape[0], "scales")});
  });
}

octet_status octet_weight_create(octet_device* device, const octet_weight_rows* rows,
                                 octet_weight** weight) {
  if (weight != nullptr) *weight = nullptr;
  return c_api::on_device(device, [&](octet::Backend& backend) {
    c_api::check_given(weight, "weight");
    const octet_weight_rows given = c_api::read_struct(rows, "rows");
    *weight = new octet_weight{device->shared, c_api::packed_weight(backend, given)};
  });
}

void octet_weight_free(octet_weight* weight) {
  if (weight == nullptr || !weight->device->is_of_this_process()) return;
  const std::shared_ptr<c_api::SharedDevice> device = weight->device;
  // An `allocate` called by this device may free weights along the way.
  std::optional<c_api::HeldDevice> held;
  if (!device->is_held_here()) held.emplace(*device);
  delete weight;
}

octet_status octet_linear_int8(octet_device* device, const octet_weight* weight,
                               const octet_matrix* codes, const float* scales, int32_t fusion,
                               const octet_matrix* y) {
  return c_api::on_device(device, [&](octet::Backend& backend) {
    const octet::QWeight& packed = c_api::weight_for(*device, weight);
    const octet::TensorView values = c_api::view_of(codes, "codes");
    backend.gemm({{values, c_api::vector_of(scales, values.shape[0], "scales")},
                  &packed,
                  c_api::view_of(y, "y")},
                 c_api::fusion_of(fusion));
  });
}

octet_status octet_linear(octet_device* device, const octet_weight* weight, const octet_matrix* x,
                          int32_t fusion, const octet_matrix* y) {
  return c_api::on_device(device, [&](octet::Backend& backend) {
    const octet::QWeight& packed = c_api::weight_for(*device, weight);
    const octet::TensorView from = c_api::view_of(x, "x");
    const int64_t m = from.shape[0], k = from.shape[1];
    octet::check_value(k == packed.k, "x", "`x` has {} columns, but the weight has k={}", k,
                       packed.k);
    const octet::TensorView out = c_api::view_of(y, "y");
    c_api::check_rows(out, m);
    const octet::Buffer values = backend.allocate(octet::bytes_of(octet::DType::i8, {m, k}));
    const octet::Buffer scales = backend.allocate(octet::bytes_of(octet::DType::f32, {m}));
    const octet::QTensor quantized = {values.view(octet::DType::i8, {m, k}),
                                      scales.view(octet::DType::f32, {m})};
    backend.quantize_rows(from, packed.transform, quantized);
    backend.gemm({quantized, &packed, out}, c_api::fusion_of(fusion));
  });
}
