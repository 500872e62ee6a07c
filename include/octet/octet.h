// Octet from C, and from every language that can call C: an engine that makes pictures, and the
// INT8 linear on its own. docs/c.md has an example and all the rules. Functions return OCTET_OK or
// an error code; octet_last_error() then explains it in one sentence. Pointers must point to what
// they claim to; NULL, a size or a type that makes no sense and a struct of another version are
// errors. Text is UTF-8.
//
// Structs: those that begin with `struct_size` may grow. Get one from its function octet_..._init()
// (or fill it with zeros and set struct_size to its size): a field that is 0 or NULL has its
// default, and so do fields added by a later version. All other structs never change.
#ifndef OCTET_OCTET_H
#define OCTET_OCTET_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "octet/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Increases when a function or a field is added. What exists keeps its meaning: a program works
// with every library whose octet_abi_version() is at least this.
#define OCTET_ABI_VERSION 3
OCTET_API int32_t octet_abi_version(void);
OCTET_API const char* octet_version(void);  // "0.1.0"
OCTET_API const char* octet_commit(void);   // of the build

// --- errors ---

typedef int32_t octet_status;
enum {
  OCTET_OK = 0,
  OCTET_ERROR = 1,            // any other error
  OCTET_INVALID_REQUEST = 2,  // an argument or a field is invalid
  OCTET_CANCELLED = 3,
  OCTET_OUT_OF_MEMORY = 4  // the device's, or the host's
};

// About the last function called on this thread that returned a status or a text: the error, and
// the wrong field or argument if known; otherwise "". Valid until the next such call.
OCTET_API const char* octet_last_error(void);
OCTET_API const char* octet_last_error_field(void);

// --- the engine: a model that stays loaded ---

typedef struct octet_engine octet_engine;

typedef int32_t octet_dtype;
enum { OCTET_F32 = 1, OCTET_BF16 = 2, OCTET_F16 = 3, OCTET_I8 = 4, OCTET_I32 = 5 };

// Which GEMM kernels of a GPU are measured: those missing from the plan file, none, or all.
enum { OCTET_TUNE_MISSING = 0, OCTET_TUNE_OFF = 1, OCTET_TUNE_ALL = 2 };
// Auto: INT8, except where the device's plan file says that floating point is faster.
enum { OCTET_LINEARS_INT8 = 0, OCTET_LINEARS_FLOAT = 1, OCTET_LINEARS_AUTO = 2 };
enum { OCTET_TEXT_LINEARS_FLOAT = 0, OCTET_TEXT_LINEARS_INT8 = 1 };
enum {
  OCTET_ATTENTION_AUTO = 0,
  OCTET_ATTENTION_FLOAT = 1,
  OCTET_ATTENTION_INT8 = 2,      // the scores
  OCTET_ATTENTION_INT8_FULL = 3  // and the values
};
// Whose arithmetic is followed where the public implementations differ.
enum { OCTET_CONVENTION_OFFICIAL = 0, OCTET_CONVENTION_DIFFUSERS = 1 };
// Where the weights of a part are kept between uses; streamed: in their files.
enum { OCTET_KEEP_DEVICE = 0, OCTET_KEEP_HOST = 1, OCTET_KEEP_STREAMED = 2 };

typedef struct octet_pair {
  const char* key;
  const char* value;
} octet_pair;

typedef struct octet_lora {
  const char* file;
  // Names of the networks it changes; none: those named in the file, or the first.
  const char* const* networks;
  size_t network_count;
  float strength;
} octet_lora;

typedef struct octet_keep {
  const char* part;  // "text_encoder", "transformer", ...; NULL: all
  int32_t where;     // OCTET_KEEP_...
} octet_keep;

typedef struct octet_options {
  size_t struct_size;
  // A folder in Hugging Face's pipeline layout, owner/name of a pulled one, or only the networks.
  const char* model;
  const char* base;         // another such folder, for parts and weights that `model` lacks
  const char* fallback;     // a third, for parts that neither has
  const octet_pair* parts;  // from elsewhere: key "vae", "text_encoder", ...; value its path
  size_t part_count;
  const octet_lora* loras;
  size_t lora_count;
  const octet_keep* keep;  // the last match counts; other parts go by free memory
  size_t keep_count;
  const char* device;            // "auto" (default), "ref", "cpu", "cuda", "cuda:1"
  uint64_t max_memory;           // bytes of device memory to use; 0: what is free
  int32_t threads;               // of the host; 0: one per physical core
  octet_dtype activations;       // OCTET_BF16 (default) or OCTET_F32
  int32_t linears;               // OCTET_LINEARS_...
  int32_t tuning;                // OCTET_TUNE_...
  int32_t convention;            // OCTET_CONVENTION_...
  int32_t unguided;              // 1: no picture is guided; the network for guidance may be missing
  int32_t require_int8;          // 1: error if a large linear did not run in native INT8
  int32_t cache_weights;         // 1: cache converted INT8 codes on disk, for later runs
  int32_t lazy;                  // 1: parts are loaded when the first picture needs them
  int32_t attention;             // OCTET_ATTENTION_...: precision of attention
  int32_t text_encoder_linears;  // OCTET_TEXT_LINEARS_...
  int32_t reserved;
} octet_options;

typedef struct octet_request {
  size_t struct_size;
  const char* caption;       // JSON text, docs/captions.md
  const char* caption_name;  // what messages call it; default "caption"
  const char* preset;        // default: the model's first
  const float* guidance;     // one for all steps, or one per step; none: the preset's
  size_t guidance_count;
  const float* noise;  // instead of the seed's, F32 [tokens, channels]
  size_t noise_count;
  const char* noise_name;  // where it comes from, for the picture's metadata
  uint64_t seed;           // of the first image; the others count up from it
  int32_t width, height;   // both 0: the model's default size
  int32_t steps;           // 0: the preset's
  int32_t images;          // 0: one
  int32_t any_caption;     // 1: run the caption despite errors, with warnings
  int32_t reserved;
} octet_request;

enum {
  OCTET_STAGE_TEXT = 0,
  OCTET_STAGE_LOAD = 1,
  OCTET_STAGE_DENOISE = 2,
  OCTET_STAGE_DECODE = 3
};

typedef struct octet_progress {
  size_t struct_size;
  int64_t done, total;  // layers, bytes, steps of all images, images
  double seconds;       // of the last step, when denoising
  double eta_s;         // until the call ends; negative: unknown
  int32_t stage;        // OCTET_STAGE_...
  int32_t reserved;
} octet_progress;

// A small, rough rendering of the latent after a step.
typedef struct octet_preview {
  size_t struct_size;
  const uint8_t* rgb;  // rows from the top, 3 bytes per pixel
  int32_t width, height;
  int32_t image;
  int32_t step, steps;  // the first is 1
  int32_t reserved;
} octet_preview;

typedef struct octet_picture {
  size_t struct_size;
  const uint8_t* rgb;
  int32_t width, height;
  uint64_t seed;  // of this picture: requested on its own, it gives the same bits
  const octet_pair* metadata;
  size_t metadata_count;
  int32_t index;  // among the images of the request
  int32_t reserved;
} octet_picture;

// What callbacks receive is valid during the call. Return nonzero to stop: pictures already
// denoised are still delivered, and the function returns OCTET_CANCELLED. Callbacks run on the
// calling thread, and the only functions of this engine they may call are octet_engine_cancel(),
// _info() and _text(). They must return: no longjmp, no exception.
typedef int (*octet_on_progress)(void* user, const octet_progress* progress);
typedef int (*octet_on_preview)(void* user, const octet_preview* preview);
typedef int (*octet_on_picture)(void* user, const octet_picture* picture);

typedef struct octet_callbacks {
  size_t struct_size;
  void* user;  // passed to each
  octet_on_progress progress;
  octet_on_preview preview;  // after each step
  octet_on_picture picture;  // each as soon as it is ready
} octet_callbacks;

typedef struct octet_report {
  size_t struct_size;
  uint64_t peak_bytes;  // peak device memory
  double text_s, load_s, denoise_s, decode_s;
  int32_t width, height;
  int32_t text_tokens, steps;
  int32_t text_cached;  // 1: the caption was encoded for an earlier picture
  // Linears of the networks: in native INT8; large ones that the checkpoint protects; small ones
  // that the model keeps in floating point; and those requested in floating point.
  int32_t linears_int8, linears_protected, linears_kept, linears_float;
  int32_t text_linears_int8;  // of the text encoder, in native INT8
} octet_report;

typedef struct octet_info {
  size_t struct_size;
  uint64_t work_bytes;       // estimated for activations at 1024 x 1024 pixels
  uint64_t available_bytes;  // device memory, when the plan was made
  uint64_t used_bytes;       // device memory, now
  int32_t token_side;        // pixels: both sides of a picture must be multiples of it
  int32_t reserved;
} octet_info;

// `progress` may be NULL; `*engine` is NULL after an error. octet_engine_free() accepts NULL; no
// other call may be running.
OCTET_API octet_status octet_engine_create(const octet_options* options, octet_on_progress progress,
                                           void* user, octet_engine** engine);
OCTET_API void octet_engine_free(octet_engine* engine);

// `callbacks` and `report` may be NULL. The engine stays loaded in any case.
OCTET_API octet_status octet_engine_render(octet_engine* engine, const octet_request* request,
                                           const octet_callbacks* callbacks, octet_report* report);
// Returns what octet_engine_render() would return about the request alone.
OCTET_API octet_status octet_engine_check(octet_engine* engine, const octet_request* request);

// Replaces the LoRAs; after an error, the previous ones are still in place.
OCTET_API octet_status octet_engine_set_loras(octet_engine* engine, const octet_lora* loras,
                                              size_t lora_count, octet_on_progress progress,
                                              void* user);

// Ends the running call, if any; from any thread.
OCTET_API void octet_engine_cancel(octet_engine* engine);

OCTET_API octet_status octet_engine_info(const octet_engine* engine, octet_info* info);

// Text about the engine: its model family, its device, where its parts are (a table), its networks
// and the model's presets (one per line). Functions with `text` and `size` write like snprintf: at
// most `size` bytes including the final NUL, and return the full length; 0 after an error.
enum {
  OCTET_TEXT_FAMILY = 0,
  OCTET_TEXT_DEVICE = 1,
  OCTET_TEXT_PLAN = 2,
  OCTET_TEXT_NETWORKS = 3,
  OCTET_TEXT_PRESETS = 4
};
OCTET_API size_t octet_engine_text(const octet_engine* engine, int32_t what, char* text,
                                   size_t size);

// Write PNG files, which appear whole or not at all; the second includes the picture's metadata.
OCTET_API octet_status octet_write_png(const char* path, const uint8_t* rgb, int32_t width,
                                       int32_t height);
OCTET_API octet_status octet_write_picture(const char* path, const octet_picture* picture);

// --- operations: the INT8 linear on its own ---
// Pointers point into device memory (for "cpu" and "ref": host memory). Work is queued on the
// device's stream without waiting: what it reads and writes must stay valid until it is done. A
// device may be used by several threads, one call at a time.

typedef struct octet_device octet_device;
typedef struct octet_weight octet_weight;

// `stream`: a cudaStream_t of the caller, which must outlive the device and its weights; NULL: the
// device's own. `threads` as in octet_options, `tuning` one of OCTET_TUNE_....
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
// codes: I8 of the same shape; scales: F32 [rows]. First, x[:, j] is multiplied by smooth[j] (F32
// [columns] or NULL), or rotated within groups of 4, 16, 64, 256 or 1024 columns (0: no rotation).
OCTET_API octet_status octet_quantize_rows(octet_device* device, const octet_matrix* x,
                                           const float* smooth, int64_t rotation_group,
                                           const octet_matrix* codes, float* scales);

// The contents of a weight; they are copied.
typedef struct octet_weight_rows {
  size_t struct_size;
  const int8_t* codes;  // [n, k]
  const float* scales;  // [n]
  const float* bias;    // [n], or NULL
  const float* smooth;  // [k], or NULL: applied by octet_linear() to activations
  int64_t n, k;
  int64_t rotation_group;  // likewise; 0: none
  int32_t on_host;         // 1: these pointers point into host memory
  int32_t gate_up;  // 1: n / 2 rows of a gate, then as many of the up projection; without a bias
} octet_weight_rows;

// A weight belongs to its device and must outlive the work of calls that read it;
// octet_weight_free() accepts NULL.
OCTET_API octet_status octet_weight_create(octet_device* device, const octet_weight_rows* rows,
                                           octet_weight** weight);
OCTET_API void octet_weight_free(octet_weight* weight);

// Swiglu, silu(gate) * up, is only for gate_up weights, and is the only one for them.
enum { OCTET_FUSION_NONE = 0, OCTET_FUSION_BIAS = 1, OCTET_FUSION_SWIGLU = 2 };

// y[i, j] = scales[i] * weight scales[j] * sum over k of codes[i, k] * weight codes[j, k], then the
// fusion. codes: I8 [m, k], never -128; y: [m, n] (swiglu: [m, n / 2]) in F32, BF16 or F16, or in
// I32 for the raw sums.
OCTET_API octet_status octet_linear_int8(octet_device* device, const octet_weight* weight,
                                         const octet_matrix* codes, const float* scales,
                                         int32_t fusion, const octet_matrix* y);
// The same from activations in F32, BF16 or F16, which are quantized as the weight requires.
OCTET_API octet_status octet_linear(octet_device* device, const octet_weight* weight,
                                    const octet_matrix* x, int32_t fusion, const octet_matrix* y);

// --- the same on another framework's streams and memory ---
// For programs that own streams, memory and weights: each call names its stream, takes memory only
// from the caller, and reads a weight in plain rows in place. A device serves all streams and
// threads this way, one call at a time; a call costs a few microseconds and does not wait, except,
// once per size (m in steps), for kernels to be measured: see `tuning` of octet_device_open().
// Nothing is measured while a stream is captured into a graph, which then uses an estimate.

// Returns this many bytes of device memory, aligned to 256, valid until the work of the call is
// done; NULL if there are none. It must not call functions of this device, which is waiting for it.
typedef void* (*octet_allocate)(void* user, size_t bytes);

typedef struct octet_call {
  size_t struct_size;
  void* stream;  // a cudaStream_t of the device, NULL: its default stream; unused on hosts
  void* memory;  // working memory, aligned to 256 (or NULL), see octet_linear_memory()
  size_t memory_bytes;
  octet_allocate allocate;  // for what does not fit there; NULL: that is an error
  void* user;               // passed to it
  const char* kernel;       // set by linears: the kernel that ran; valid as long as the library
  // 1: x is quantized with each step rounded to its dtype, as PyTorch's own operations do: this
  // gives the codes of programs written with them, slightly further from x. Codes may be -128 (on
  // hosts with only AVX2: -127), and are only for the device that made them.
  int32_t stepwise;
  int32_t reserved;
} octet_call;

// A weight that stays where it is, in device memory; fields without a comment are as in
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

// Bytes of octet_call::memory for the quantized activations of a linear, m x k of them. Memory for
// partial sums, and for copies of what kernels cannot read or write in place, comes from
// `allocate`.
OCTET_API size_t octet_linear_memory(int64_t m, int64_t k);

OCTET_API octet_status octet_call_quantize_rows(octet_device* device, octet_call* call,
                                                const octet_matrix* x, const float* smooth,
                                                int64_t rotation_group, const octet_matrix* codes,
                                                float* scales);
// Pass either `weight` or `packed`, and NULL for the other. The weight determines the fusion: a
// bias is added, a gate and an up projection become swiglu; an I32 output gets the raw sums.
OCTET_API octet_status octet_call_linear_int8(octet_device* device, octet_call* call,
                                              const octet_plain_weight* weight,
                                              const octet_weight* packed, const octet_matrix* codes,
                                              const float* scales, const octet_matrix* y);
OCTET_API octet_status octet_call_linear(octet_device* device, octet_call* call,
                                         const octet_plain_weight* weight,
                                         const octet_weight* packed, const octet_matrix* x,
                                         const octet_matrix* y);

// --- structs with their defaults ---
// Defined here and not in the library, whose structs may be larger than the program's.

#define OCTET_DEFINE_INIT(type)          \
  static inline type type##_init(void) { \
    type made;                           \
    memset(&made, 0, sizeof made);       \
    made.struct_size = sizeof made;      \
    return made;                         \
  }
OCTET_DEFINE_INIT(octet_options)
OCTET_DEFINE_INIT(octet_request)
OCTET_DEFINE_INIT(octet_callbacks)
OCTET_DEFINE_INIT(octet_report)
OCTET_DEFINE_INIT(octet_info)
OCTET_DEFINE_INIT(octet_weight_rows)
OCTET_DEFINE_INIT(octet_call)
OCTET_DEFINE_INIT(octet_plain_weight)
#undef OCTET_DEFINE_INIT

#ifdef __cplusplus
}
#endif

#endif
