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

#include "octet/operations.h"
#include "octet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- the engine: a model that stays loaded ---

typedef struct octet_engine octet_engine;

// Ends what it was given to (`stop` of octet_options and octet_request), from any thread, and also
// what begins only after octet_stop_request(). It outlives what it was given to;
// octet_stop_free() takes NULL, too.
typedef struct octet_stop octet_stop;
OCTET_API octet_status octet_stop_create(octet_stop** stop);
OCTET_API void octet_stop_request(octet_stop* stop);
OCTET_API void octet_stop_free(octet_stop* stop);

// Auto: INT8, but for those that the device's plan file knows to be faster in floating point.
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
  octet_stop* stop;  // ends this request alone; NULL: octet_engine_cancel()
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
  int32_t width, height;  // of pictures whose request names no size
} octet_info;

// Steps, guidance and times that go with a model.
typedef struct octet_preset {
  size_t struct_size;
  const char* name;           // "quality"
  const char* official_name;  // "V4_QUALITY_48"; may be ""
  int32_t steps;
  int32_t reserved;
} octet_preset;

// `progress` may be NULL, `*engine` is NULL after an error. octet_engine_free() takes NULL, too; no
// other call may be under way.
OCTET_API octet_status octet_engine_create(const octet_options* options, octet_on_progress progress,
                                           void* user, octet_engine** engine);
OCTET_API void octet_engine_free(octet_engine* engine);

// Releases what is loaded; and loads this in its place. After an error of the second, nothing is
// loaded. Without a model, only these two, _free() and _cancel() have a meaning.
OCTET_API octet_status octet_engine_unload(octet_engine* engine);
OCTET_API octet_status octet_engine_load(octet_engine* engine, const octet_options* options,
                                         octet_on_progress progress, void* user);

// `callbacks` and `report` may be NULL. The engine stays loaded whatever is returned.
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

// The presets of the model, in their order; the first is the default.
typedef void (*octet_on_preset)(void* user, const octet_preset* preset);
OCTET_API octet_status octet_engine_presets(const octet_engine* engine, octet_on_preset on_preset,
                                            void* user);

// --- captions, docs/captions.md ---

typedef struct octet_finding {
  size_t struct_size;
  const char* path;  // "$.compositional_deconstruction.elements[2].bbox"; "$" is all of it
  const char* rule;  // what was expected and what is there
  int32_t is_error;  // 0: a warning
  int32_t fixable;   // 1: the text that octet_check_caption() writes has it mended
} octet_finding;
typedef void (*octet_on_finding)(void* user, const octet_finding* finding);

// Writes the caption as the model gets it. It is an error, and 0 is returned, where an error
// remains that is not fixable. `on_finding` (or NULL) gets every finding, also of such a caption.
OCTET_API size_t octet_check_caption(const char* caption, octet_on_finding on_finding, void* user,
                                     char* text, size_t size);
// A minimal caption that says `plain_text`, which models know less well.
OCTET_API size_t octet_wrap_plain_text(const char* plain_text, char* text, size_t size);

// --- PNG: of any thread, no engine waits for it ---

// In memory. `level`: 1 (or 0) is the fastest, 9 gives the least bytes of drawings; pictures hardly
// gain. `scale`: each pixel of a preview becomes a square of so many; 0: 1. What was made is freed
// by octet_bytes_free(), which takes NULL and empty ones, too.
typedef struct octet_bytes {
  uint8_t* data;
  size_t size;
} octet_bytes;
OCTET_API octet_status octet_encode_picture(const octet_picture* picture, int32_t level,
                                            octet_bytes* png);
OCTET_API octet_status octet_encode_preview(const octet_preview* preview, int32_t scale,
                                            octet_bytes* png);
OCTET_API void octet_bytes_free(octet_bytes* bytes);

// As files, which appear whole or not at all; the second keeps the picture's metadata.
OCTET_API octet_status octet_write_png(const char* path, const uint8_t* rgb, int32_t width,
                                       int32_t height);
OCTET_API octet_status octet_write_picture(const char* path, const octet_picture* picture);

// --- devices of this machine ---

typedef struct octet_device_info {
  size_t struct_size;
  const char* name;         // what octet_options::device takes: "cpu", "cuda:0"
  const char* description;  // in words
  const char* int8_kernel;  // that would run; "" when there is none
  const char* unavailable;  // why it cannot run the INT8 path; "" when it can
} octet_device_info;
typedef void (*octet_on_device)(void* user, const octet_device_info* device);
OCTET_API octet_status octet_list_devices(octet_on_device on_device, void* user);

OCTET_DEFINE_INIT(octet_options)
OCTET_DEFINE_INIT(octet_request)
OCTET_DEFINE_INIT(octet_callbacks)
OCTET_DEFINE_INIT(octet_report)
OCTET_DEFINE_INIT(octet_info)

#ifdef __cplusplus
}
#endif

#endif
