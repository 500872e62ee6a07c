// The INT8 linear by itself, in C. Included by octet/octet.h, which says how structs and errors
// work.
//
// Pointers are into the memory of the device (of "cpu" and "ref": the host's). Work is put on the
// device's stream and not waited for: what it reads and writes must stay until it is done. A device
// may be used by several threads, in turns.
#ifndef OCTET_OPERATIONS_H
#define OCTET_OPERATIONS_H

#include "octet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octet_device octet_device;
typedef struct octet_weight octet_weight;

// `stream`: a cudaStream_t of the caller to work on, which outlives the device and its weights;
// NULL: its own. `threads` as in octet_options, `tuning` one of OCTET_TUNE_....
OCTET_API octet_status octet_device_open(const char* name, void* stream, int32_t threads,
                                         int32_t tuning, octet_device** device);
OCTET_API void octet_device_free(octet_device* device);
OCTET_API octet_status octet_device_synchronize(octet_device* device);
OCTET_API size_t octet_device_describe(const octet_device* device, char* text, size_t size);
// The kernel that the last linear ran.
OCTET_API size_t octet_last_kernel(const octet_device* device, char* text, size_t size);

typedef struct octet_matrix {
  void* data;
  int64_t rows, columns;
  int64_t row_stride;  // elements from one row to the next; 0: the columns
  octet_dtype dtype;
  int32_t reserved;
} octet_matrix;

// codes[i, j] = rint(x[i, j] * 127 / amax of row i), scales[i] = amax / 127. x: F32, BF16 or F16;
// codes: I8 of the same shape; scales: F32 [rows]. Before that, x[:, j] is multiplied by smooth[j]
// (F32 [columns] or NULL), or rotated within groups of 4, 16, 64, 256 or 1024 columns (or 0).
OCTET_API octet_status octet_quantize_rows(octet_device* device, const octet_matrix* x,
                                           const float* smooth, int64_t rotation_group,
                                           const octet_matrix* codes, float* scales);

// How a weight is given; it is copied.
typedef struct octet_weight_rows {
  size_t struct_size;
  const int8_t* codes;  // [n, k]
  const float* scales;  // [n]
  const float* bias;    // [n], or NULL
  const float* smooth;  // [k], or NULL: what octet_linear() does to activations first
  int64_t n, k;
  int64_t rotation_group;  // or 0; the same
  int32_t on_host;         // 1: these pointers are into the host's memory
  int32_t gate_up;  // 1: n / 2 rows of a gate, then as many of the up projection; without a bias
} octet_weight_rows;

// A weight is for its device alone, and outlives the work of calls that read it;
// octet_weight_free() takes NULL, too.
OCTET_API octet_status octet_weight_create(octet_device* device, const octet_weight_rows* rows,
                                           octet_weight** weight);
OCTET_API void octet_weight_free(octet_weight* weight);

// Swiglu, silu(gate) * up, is for gate_up weights alone, and the only one for these.
enum { OCTET_FUSION_NONE = 0, OCTET_FUSION_BIAS = 1, OCTET_FUSION_SWIGLU = 2 };

// y[i, j] = scales[i] * weight scales[j] * sum over k of codes[i, k] * weight codes[j, k], and the
// fusion. codes: I8 [m, k], never -128; y: [m, n] (swiglu: [m, n / 2]) in F32, BF16 or F16, or in
// I32, the bare sums.
OCTET_API octet_status octet_linear_int8(octet_device* device, const octet_weight* weight,
                                         const octet_matrix* codes, const float* scales,
                                         int32_t fusion, const octet_matrix* y);
// The same of activations in F32, BF16 or F16, which are quantized as the weight asks for.
OCTET_API octet_status octet_linear(octet_device* device, const octet_weight* weight,
                                    const octet_matrix* x, int32_t fusion, const octet_matrix* y);

// --- the same on another framework's streams and memory ---
//
// For programs that own streams, memory and weights: each call says where it works, takes memory
// from the caller alone, and reads a weight in plain rows where it lies. A device serves all
// streams and threads this way, in turns; a call costs a few microseconds, and waits for nothing
// but, once for each size (m in steps), for kernels to be measured: `tuning` of
// octet_device_open(), never while a stream is captured into a graph, which keeps an estimate.

// So many bytes of the device's memory, aligned to 256, that stay until the work of the call is
// done; NULL when there is none. It must not call a function of this device, which waits for it.
typedef void* (*octet_allocate)(void* user, size_t bytes);

typedef struct octet_call {
  size_t struct_size;
  void* stream;  // a cudaStream_t of the device, NULL: its default stream; not of hosts
  void* memory;  // to work in, aligned to 256 (or NULL), see octet_linear_memory()
  size_t memory_bytes;
  octet_allocate allocate;  // for what does not fit there; NULL: that is an error
  void* user;               // handed to it
  const char* kernel;       // set by linears: the kernel that ran; lasts as long as the library
  // 1: x is quantized with each step rounded to its dtype, as PyTorch's own operations would: the
  // codes of programs that are written in them, a little further from x. They may be -128 (on hosts
  // with AVX2 alone: -127), and are for the device that made them.
  int32_t stepwise;
  int32_t reserved;
} octet_call;

// A weight that stays where it is, in the device's memory; what has no comment is as in
// octet_weight_rows.
typedef struct octet_plain_weight {
  size_t struct_size;
  const int8_t* codes;
  int64_t n, k;
  int64_t row_stride;   // bytes from one row to the next; 0: k
  const float* scales;  // [scale_count]
  int64_t scale_count;  // n, or 1: the same for all rows
  const void* bias;     // [n], or NULL
  const float* smooth;
  int64_t rotation_group;
  octet_dtype bias_dtype;  // F32, BF16 or F16
  int32_t gate_up;
} octet_plain_weight;

// Bytes of octet_call::memory that the quantized activations of a linear take, m x k of them. Sums
// that kernels share, and what they cannot read or write where it lies, come from `allocate`.
OCTET_API size_t octet_linear_memory(int64_t m, int64_t k);

OCTET_API octet_status octet_call_quantize_rows(octet_device* device, octet_call* call,
                                                const octet_matrix* x, const float* smooth,
                                                int64_t rotation_group, const octet_matrix* codes,
                                                float* scales);
// `weight` or `packed`: one of them, the other NULL. What a weight has decides what happens to the
// product: a bias is added, a gate and an up projection become swiglu, and I32 are the bare sums.
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
