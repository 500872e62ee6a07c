// The INT8 linear by itself, in C. octet/octet.h includes it and explains structs and errors.
//
// Pointers refer to the device's memory (for "cpu" and "ref", the host's). Functions queue work on
// the device's stream and return without waiting: keep operands and results alive until it is done.
// Several threads may use a device; their calls take turns.
#ifndef OCTET_OPERATIONS_H
#define OCTET_OPERATIONS_H

#include "octet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octet_device octet_device;
typedef struct octet_weight octet_weight;

// `stream`: the caller's cudaStream_t to work on, which must outlive the device and its weights;
// NULL: a stream of its own. `threads` as in octet_options, `tuning` one of OCTET_TUNE_....
OCTET_API octet_status octet_device_open(const char* name, void* stream, int32_t threads,
                                         int32_t tuning, octet_device** device);
OCTET_API void octet_device_free(octet_device* device);
OCTET_API octet_status octet_device_synchronize(octet_device* device);
OCTET_API size_t octet_device_describe(const octet_device* device, char* text, size_t size);
// The kernel that ran the last linear.
OCTET_API size_t octet_last_kernel(const octet_device* device, char* text, size_t size);

typedef struct octet_matrix {
  void* data;
  int64_t rows, columns;
  int64_t row_stride;  // elements from one row to the next; 0: as many as columns
  octet_dtype dtype;
  int32_t reserved;
} octet_matrix;

// codes[i, j] = rint(x[i, j] * 127 / amax of row i), scales[i] = amax / 127. x: F32, BF16 or F16;
// codes: I8 of the same shape; scales: F32 [rows]. Before that, x[:, j] is multiplied by smooth[j]
// (F32 [columns] or NULL), or rotated within groups of 4, 16, 64, 256 or 1024 columns (or 0).
OCTET_API octet_status octet_quantize_rows(octet_device* device, const octet_matrix* x,
                                           const float* smooth, int64_t rotation_group,
                                           const octet_matrix* codes, float* scales);

// The rows of a weight, which are copied.
typedef struct octet_weight_rows {
  size_t struct_size;
  const int8_t* codes;  // [n, k]
  const float* scales;  // [n], finite
  const float* bias;    // [n], or NULL
  const float* smooth;  // [k], finite, or NULL: octet_linear() multiplies activations by it first
  int64_t n, k;
  int64_t rotation_group;  // or 0: octet_linear() rotates activations in such groups first
  int32_t on_host;         // 1: these pointers refer to host memory
  int32_t gate_up;         // 1: n / 2 rows of a gate, then n / 2 of an up projection; no bias
} octet_weight_rows;

// A weight works only on its device, and must outlive the work of calls that read it.
// octet_weight_free() accepts NULL.
OCTET_API octet_status octet_weight_create(octet_device* device, const octet_weight_rows* rows,
                                           octet_weight** weight);
OCTET_API void octet_weight_free(octet_weight* weight);

// Swiglu is silu(gate) * up. gate_up weights require it, and no other weight can have it.
enum { OCTET_FUSION_NONE = 0, OCTET_FUSION_BIAS = 1, OCTET_FUSION_SWIGLU = 2 };

// y[i, j] = scales[i] * weight scales[j] * sum over k of codes[i, k] * weight codes[j, k], then the
// fusion. codes: I8 [m, k], never -128; y: [m, n] (swiglu: [m, n / 2]) in F32, BF16 or F16, or in
// I32 for the raw sums.
OCTET_API octet_status octet_linear_int8(octet_device* device, const octet_weight* weight,
                                         const octet_matrix* codes, const float* scales,
                                         int32_t fusion, const octet_matrix* y);
// The same for activations in F32, BF16 or F16, which are first quantized as the weight requires.
OCTET_API octet_status octet_linear(octet_device* device, const octet_weight* weight,
                                    const octet_matrix* x, int32_t fusion, const octet_matrix* y);

// --- the same on another framework's streams and memory ---
//
// For programs that own streams, memory and weights: on a GPU each call names its stream and takes
// all memory from the caller; everywhere it reads a weight in plain rows where it lies. A device
// serves all streams and threads this way, in turns. A call costs a few microseconds and does not
// wait, except once per size (m in steps) while kernels are measured (`tuning` of
// octet_device_open()). While a stream is captured into a graph nothing is measured, and the graph
// keeps an estimated choice.

// Returns `bytes` bytes of device memory, aligned to 256, that stay valid until the call's work is
// done, or NULL if there are none. The device waits for it, so it must not call the device.
typedef void* (*octet_allocate)(void* user, size_t bytes);

typedef struct octet_call {
  size_t struct_size;
  void*
      stream;  // a cudaStream_t; NULL: the device's default stream; hosts have none, and take NULL
  // Scratch memory of a GPU, aligned to 256, or NULL; see octet_linear_memory(). Hosts have their
  // own: of `memory` and `allocate` they use nothing.
  void* memory;
  size_t memory_bytes;
  octet_allocate allocate;  // for what does not fit there; NULL: that is an error
  void* user;               // passed to `allocate`
  const char* kernel;       // set by linears: the kernel that ran; valid while the library is
  // 1: x is quantized with each step rounded to its dtype, as PyTorch programs do: the same codes
  // as theirs, slightly less exact. They may be -128 (-127 on hosts with only AVX2), and only the
  // device that made them takes them.
  int32_t stepwise;
  int32_t reserved;
} octet_call;

// A weight that stays where it is in the device's memory. Fields without a comment are as in
// octet_weight_rows.
typedef struct octet_plain_weight {
  size_t struct_size;
  const int8_t* codes;
  int64_t n, k;
  int64_t row_stride;   // bytes from one row to the next; 0: k
  const float* scales;  // [scale_count], finite, which only hosts check
  int64_t scale_count;  // n, or 1: the same for all rows
  const void* bias;     // [n], or NULL
  const float* smooth;
  int64_t rotation_group;
  octet_dtype bias_dtype;  // F32, BF16 or F16
  int32_t gate_up;
} octet_plain_weight;

// Bytes of octet_call::memory that m x k quantized activations of a linear take. Partial sums, and
// copies of operands that kernels cannot use in place, come from `allocate`.
OCTET_API size_t octet_linear_memory(int64_t m, int64_t k);

OCTET_API octet_status octet_call_quantize_rows(octet_device* device, octet_call* call,
                                                const octet_matrix* x, const float* smooth,
                                                int64_t rotation_group, const octet_matrix* codes,
                                                float* scales);
// Either `weight` or `packed`; the other is NULL. The weight and y decide what happens to the
// product: a bias is added, gate_up becomes swiglu, and a y in I32 receives the raw sums.
OCTET_API octet_status octet_call_linear_int8(octet_device* device, octet_call* call,
                                              const octet_plain_weight* weight,
                                              const octet_weight* packed, const octet_matrix* codes,
                                              const float* scales, const octet_matrix* y);
OCTET_API octet_status octet_call_linear(octet_device* device, octet_call* call,
                                         const octet_plain_weight* weight,
                                         const octet_weight* packed, const octet_matrix* x,
                                         const octet_matrix* y);

OCTET_DEFINE_INIT(octet_weight_rows)
OCTET_DEFINE_INIT(octet_call)
OCTET_DEFINE_INIT(octet_plain_weight)

#ifdef __cplusplus
}
#endif

#endif
