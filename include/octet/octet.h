// Octet for C, and for every language that can call C: an engine that makes pictures, and the
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

#include "octet/operations.h"
#include "octet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- the engine: a model that stays loaded ---

typedef struct octet_engine octet_engine;

// Stops the calls it was passed to (`stop` of octet_options and octet_request), from any thread,
// including those that begin after octet_stop_request(). It must outlive these calls.
// octet_stop_free() accepts NULL.
typedef struct octet_stop octet_stop;
OCTET_API octet_status octet_stop_create(octet_stop** stop);
OCTET_API void octet_stop_request(octet_stop* stop);
OCTET_API void octet_stop_free(octet_stop* stop);

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
  octet_stop* stop;  // ends loading; NULL: nothing does
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
  octet_stop* stop;         // ends only this request; NULL: only octet_engine_cancel() does
  const char* negative;     // what to guide away from, for models that take it; NULL: nothing
  const octet_lora* loras;  // instead of the model's, for this request only; none: the model's
  size_t lora_count;
  int32_t no_loras;  // 1: none, not even the model's
  int32_t reserved2;
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
  double fraction;  // of the image that is being decoded, from 0 to 1
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
// calling thread and may call only those functions of this engine that never wait (see below).
// They must return: no longjmp, no exception.
typedef int (*octet_on_progress)(void* user, const octet_progress* progress);
typedef int (*octet_on_preview)(void* user, const octet_preview* preview);
typedef int (*octet_on_picture)(void* user, const octet_picture* picture);
typedef void (*octet_on_warning)(void* user, const char* sentence);

typedef struct octet_callbacks {
  size_t struct_size;
  void* user;  // passed to each
  octet_on_progress progress;
  octet_on_preview preview;  // after each step
  octet_on_picture picture;  // each as soon as it is ready
  octet_on_warning warning;  // about the request, before anything runs
  int32_t preview_every;     // steps; the last step always has one; 0: every step
  int32_t reserved;
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
  int32_t warnings;           // their number; octet_callbacks::warning receives their sentences
  int32_t reserved;
} octet_report;

typedef struct octet_info {
  size_t struct_size;
  uint64_t work_bytes;       // estimated for activations at 1024 x 1024 pixels
  uint64_t available_bytes;  // device memory, when the plan was made
  uint64_t used_bytes;       // device memory, now
  int32_t token_side;        // pixels: both sides of a picture must be multiples of it
  int32_t reserved;
  int32_t width, height;   // of pictures whose request names no size
  int32_t takes_negative;  // 1: octet_request::negative is supported
  int32_t reserved2;
} octet_info;

// A request that was checked; it never changes.
typedef struct octet_job octet_job;
typedef struct octet_job_info {
  size_t struct_size;
  int64_t tokens, channels;  // of the latent of a picture, as octet_request::noise takes them
  int32_t width, height;     // of the pictures, even if the request names no size
  int32_t steps;
  int32_t text_tokens;  // of the caption
} octet_job_info;

// What a job is expected to take.
typedef struct octet_estimate {
  size_t struct_size;
  double seconds;         // from what this engine has measured so far; negative: unknown
  uint64_t device_bytes;  // weights that stay there, and activations at the job's size
  uint64_t host_bytes;    // weights that stay there
} octet_estimate;

// What an engine is doing now.
typedef struct octet_state {
  size_t struct_size;
  uint64_t used_bytes;   // device memory, by this engine
  uint64_t peak_bytes;   // the most of it since the last picture began
  uint64_t free_bytes;   // device memory that any process may use; 0: unknown
  int64_t done, total;   // of the running call, as last reported; see octet_progress
  double fraction;       // the same
  double eta_s;          // the same
  int32_t stage;         // the same
  int32_t loaded, busy;  // 1: a model is loaded; a call is running
  int32_t reserved;
  // Version 6.
  double joules;  // that the device has drawn since the model was loaded; 0: unknown
} octet_state;

// Steps, guidance and times that go with a model.
typedef struct octet_preset {
  size_t struct_size;
  const char* name;           // "quality"
  const char* official_name;  // "V4_QUALITY_48"; may be ""
  int32_t steps;
  int32_t reserved;
} octet_preset;

// An engine does one thing at a time: _load(), _unload(), _render(), _render_job(), _warm_up() and
// _set_loras() wait for the previous call. All other functions never wait: a server checks requests
// while a picture is rendered.

// `progress` may be NULL; `*engine` is NULL after an error. octet_engine_free() accepts NULL; it
// ends the calls of other threads and waits for them, but not within a callback of this engine. A
// call after it fails. In the child of a fork() all calls fail but _cancel() and _free().
OCTET_API octet_status octet_engine_create(const octet_options* options, octet_on_progress progress,
                                           void* user, octet_engine** engine);
OCTET_API void octet_engine_free(octet_engine* engine);

// _load() first releases what is loaded; if it fails, nothing is loaded. But a field that is wrong
// in itself, and a stop before its turn, leave what is loaded. Without a model, only these two,
// _free(), _cancel() and _state() are useful.
OCTET_API octet_status octet_engine_unload(octet_engine* engine);
OCTET_API octet_status octet_engine_load(octet_engine* engine, const octet_options* options,
                                         octet_on_progress progress, void* user);

// `callbacks` and `report` may be NULL. The engine stays loaded whatever is returned.
OCTET_API octet_status octet_engine_render(octet_engine* engine, const octet_request* request,
                                           const octet_callbacks* callbacks, octet_report* report);
// Returns what octet_engine_render() would return for a wrong request, without rendering.
OCTET_API octet_status octet_engine_check(octet_engine* engine, const octet_request* request);

// The same in two steps: a job is valid for this engine until its next _load(), and may be rendered
// any number of times. `*job` is NULL after an error; octet_job_free() accepts NULL.
OCTET_API octet_status octet_job_create(const octet_engine* engine, const octet_request* request,
                                        octet_job** job);
OCTET_API void octet_job_free(octet_job* job);
OCTET_API octet_status octet_job_describe(const octet_job* job, octet_job_info* info);
OCTET_API octet_status octet_engine_render_job(octet_engine* engine, const octet_job* job,
                                               const octet_callbacks* callbacks,
                                               octet_report* report);
OCTET_API octet_status octet_engine_estimate(const octet_engine* engine, const octet_job* job,
                                             octet_estimate* estimate);

// Works without a model, too.
OCTET_API octet_status octet_engine_state(const octet_engine* engine, octet_state* state);

// Does ahead of time what the first picture of a size would wait for, and, if `previews` is 1, what
// the first preview would. Both sides 0: the model's default size. `stop` may be NULL.
OCTET_API octet_status octet_engine_warm_up(octet_engine* engine, int32_t width, int32_t height,
                                            int32_t previews, octet_stop* stop);

// Replaces the LoRAs; after an error, the previous ones are still in place.
OCTET_API octet_status octet_engine_set_loras(octet_engine* engine, const octet_lora* loras,
                                              size_t lora_count, octet_on_progress progress,
                                              void* user);

// Ends the running call, if any; from any thread.
OCTET_API void octet_engine_cancel(octet_engine* engine);

OCTET_API octet_status octet_engine_info(const octet_engine* engine, octet_info* info);

// Text about the engine: its model family, its device, where its parts are (a table), its networks,
// the model's presets and the branches of a guided step (one per line). Functions with `text` and
// `size` write like snprintf: at most `size` bytes including the final NUL, and return the full
// length; 0 after an error.
enum {
  OCTET_TEXT_FAMILY = 0,
  OCTET_TEXT_DEVICE = 1,
  OCTET_TEXT_PLAN = 2,
  OCTET_TEXT_NETWORKS = 3,
  OCTET_TEXT_PRESETS = 4,
  OCTET_TEXT_BRANCHES = 5
};
OCTET_API size_t octet_engine_text(const octet_engine* engine, int32_t what, char* text,
                                   size_t size);

// The presets of the model, in their order; the first is the default.
typedef void (*octet_on_preset)(void* user, const octet_preset* preset);
OCTET_API octet_status octet_engine_presets(const octet_engine* engine, octet_on_preset on_preset,
                                            void* user);

// --- captions, docs/captions.md ---

typedef struct octet_finding {
  size_t struct_size;
  const char* path;  // "$.compositional_deconstruction.elements[2].bbox"; "$": the whole caption
  const char* rule;  // what was expected and what was found
  int32_t is_error;  // 0: a warning
  int32_t fixable;   // 1: fixed in the text that octet_check_caption() writes
} octet_finding;
typedef void (*octet_on_finding)(void* user, const octet_finding* finding);

// Writes the caption as it is passed to the model. Fails and returns 0 if an error remains that is
// not fixable. `on_finding` (may be NULL) receives all findings, even then.
OCTET_API size_t octet_check_caption(const char* caption, octet_on_finding on_finding, void* user,
                                     char* text, size_t size);
// A minimal caption that says `plain_text`; pictures of full captions are better.
OCTET_API size_t octet_wrap_plain_text(const char* plain_text, char* text, size_t size);

// --- picture files: from any thread, independent of engines ---

// In memory. `level`: 1 (or 0) is the fastest; up to 9, drawings get smaller, photographs hardly.
// `scale`: each pixel of a preview becomes a square with this side; 0: 1. Free the result with
// octet_bytes_free(), which accepts NULL and empty structs.
typedef struct octet_bytes {
  uint8_t* data;
  size_t size;
} octet_bytes;
OCTET_API octet_status octet_encode_picture(const octet_picture* picture, int32_t level,
                                            octet_bytes* png);
OCTET_API octet_status octet_encode_preview(const octet_preview* preview, int32_t scale,
                                            octet_bytes* png);
OCTET_API void octet_bytes_free(octet_bytes* bytes);

// As files, which appear whole or not at all. The second also stores the picture's metadata, and
// goes by the name's ending: .jpg, .jpeg and .webp are JPEG and WebP, if the build has libjpeg and
// libwebp; all others are PNG.
OCTET_API octet_status octet_write_png(const char* path, const uint8_t* rgb, int32_t width,
                                       int32_t height);
OCTET_API octet_status octet_write_picture(const char* path, const octet_picture* picture);

// --- devices of this machine ---

typedef struct octet_device_info {
  size_t struct_size;
  const char* name;         // what octet_options::device takes: "cpu", "cuda:0"
  const char* description;  // in words
  const char* int8_kernel;  // the GEMM kernel that would run; "" when there is none
  const char* unavailable;  // why it cannot run the INT8 path; "" when it can
} octet_device_info;
typedef void (*octet_on_device)(void* user, const octet_device_info* device);
OCTET_API octet_status octet_list_devices(octet_on_device on_device, void* user);

OCTET_DEFINE_INIT(octet_options)
OCTET_DEFINE_INIT(octet_request)
OCTET_DEFINE_INIT(octet_callbacks)
OCTET_DEFINE_INIT(octet_report)
OCTET_DEFINE_INIT(octet_info)
OCTET_DEFINE_INIT(octet_job_info)
OCTET_DEFINE_INIT(octet_estimate)
OCTET_DEFINE_INIT(octet_state)

#ifdef __cplusplus
}
#endif

#endif
