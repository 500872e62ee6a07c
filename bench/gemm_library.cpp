// liboctet_bench.so: Octet's INT8 GEMM behind a C interface, for bench/octet_library.py, which
// times it in one process with other libraries, on the same buffers and the same stream.
//
// Pointers are into the device's memory (for cpu and ref: the host's), and what they point to is
// dense. Work is put on the stream that open() was given and not waited for. A function that fails
// returns null or -1, and octet_bench_error() then says why; no exception leaves. Types are named
// as in safetensors files ("BF16", "I32"), fusions as in backend/fusion.h ("swiglu").
#include <exception>
#include <memory>
#include <string>
#include <type_traits>

#include "backend/backend.h"
#include "base/error.h"
#include "devices/select.h"
#include "octet/version.h"

#define OCTET_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace octet;

struct Bench {
  std::unique_ptr<Backend> backend;
  std::string description;
  std::string kernel;  // that ran last
};

thread_local std::string last_error;

// What `work` returns, or `failed` with the reason in last_error.
template <class Result, class Work>
Result guarded(Result failed, Work work) noexcept {
  try {
    last_error.clear();
    return work();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "an exception of an unknown type";
  }
  return failed;
}

template <class T>
TensorView vector_at(T* at, DType dtype, int64_t count) {
  // A QTensor serves outputs too and is hence never const; inputs are only read.
  return {reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(at)), dtype, {count}};
}

template <class T>
TensorView matrix_at(T* at, DType dtype, int64_t rows, int64_t columns) {
  return {reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(at)),
          dtype,
          {rows, columns}};
}

DType parse_dtype(const char* name) {
  const auto dtype = dtype_from_name(name);
  check(dtype.has_value(), "'{}' is no type, expected a name such as BF16 or I32", name);
  return *dtype;
}

Fusion parse_fusion(const char* name) {
  for (const Fusion fusion : {Fusion::none, Fusion::bias, Fusion::swiglu}) {
    if (name_of(fusion) == name) return fusion;
  }
  fail("'{}' is no fusion, expected none, bias or swiglu", name);
}

Buffer host_copy(Backend& backend, const void* from, size_t bytes) {
  Buffer host = allocate_host(bytes);
  backend.copy_to_host(host.data(), static_cast<const std::byte*>(from), bytes);
  return host;
}

}  // namespace

OCTET_EXPORT const char* octet_bench_error() { return last_error.c_str(); }

OCTET_EXPORT const char* octet_bench_commit() {
  static const std::string text = commit();
  return text.c_str();
}

// device: "cuda:0", "cpu". stream: a cudaStream_t, never the default one (null: Octet's own).
// tune: off, missing or all.
OCTET_EXPORT Bench* octet_bench_open(const char* device, void* stream, const char* tune) {
  return guarded<Bench*>(nullptr, [&] {
    auto bench = std::make_unique<Bench>();
    bench->backend =
        select_backend({.device = device, .tune = tune::parse_tune_mode(tune), .stream = stream});
    bench->description = bench->backend->description();
    bench->backend->set_gemm_observer(
        [raw = bench.get()](const GemmProblem&, std::string_view kernel) {
          if (raw->kernel != kernel) raw->kernel = kernel;
        });
    return bench.release();
  });
}

OCTET_EXPORT void octet_bench_close(Bench* bench) { delete bench; }

OCTET_EXPORT const char* octet_bench_description(const Bench* bench) {
  return bench->description.c_str();
}

// The kernel that the latest gemm ran; valid until the next one.
OCTET_EXPORT const char* octet_bench_kernel(const Bench* bench) { return bench->kernel.c_str(); }

// rows I8 [n, k] and scales F32 [n]; bias F32 [n] or null. gate_up: n / 2 rows of the gate, then as
// many of the up projection, for the fusion swiglu.
OCTET_EXPORT QWeight* octet_bench_pack(Bench* bench, const int8_t* rows, const float* scales,
                                       const float* bias, int64_t n, int64_t k, int gate_up) {
  return guarded<QWeight*>(nullptr, [&] {
    Backend& backend = *bench->backend;
    backend.synchronize();
    const Buffer values = host_copy(backend, rows, bytes_of(DType::i8, {n, k}));
    const Buffer factors = host_copy(backend, scales, bytes_of(DType::f32, {n}));
    Buffer addends;
    ConstTensorView bias_view;
    if (bias != nullptr) {
      addends = host_copy(backend, bias, bytes_of(DType::f32, {n}));
      bias_view = addends.view(DType::f32, {n});
    }
    auto weight = std::make_unique<QWeight>(
        backend.pack({values.view(DType::i8, {n, k}), factors.view(DType::f32, {n})}, bias_view, {},
                     gate_up != 0 ? RowOrder::gate_up : RowOrder::plain));
    backend.synchronize();
    return weight.release();
  });
}

OCTET_EXPORT void octet_bench_free_weight(QWeight* weight) { delete weight; }

// a I8 [m, k], row_scale F32 [m]; out [m, n], or [m, n / 2] for swiglu.
OCTET_EXPORT int octet_bench_gemm(Bench* bench, const QWeight* weight, const int8_t* a,
                                  const float* row_scale, int64_t m, void* out, const char* dtype,
                                  const char* fusion) {
  return guarded(-1, [&] {
    const Fusion how = parse_fusion(fusion);
    const int64_t columns = how == Fusion::swiglu ? weight->n / 2 : weight->n;
    bench->backend->gemm(
        {{matrix_at(a, DType::i8, m, weight->k), vector_at(row_scale, DType::f32, m)},
         weight,
         matrix_at(static_cast<std::byte*>(out), parse_dtype(dtype), m, columns)},
        how);
    return 0;
  });
}

// x [m, k] of `dtype` -> values I8 [m, k], scales F32 [m]; rotated in groups of `group`, if any.
OCTET_EXPORT int octet_bench_quantize(Bench* bench, const void* x, const char* dtype, int64_t m,
                                      int64_t k, int64_t group, int8_t* values, float* scales) {
  return guarded(-1, [&] {
    ActivationTransform transform;
    if (group > 0) transform = {.kind = Transform::rotate, .group = group};
    bench->backend->quantize_rows(
        matrix_at(static_cast<const std::byte*>(x), parse_dtype(dtype), m, k), transform,
        {matrix_at(values, DType::i8, m, k), vector_at(scales, DType::f32, m)});
    return 0;
  });
}
