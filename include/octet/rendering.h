// What an engine reports while it works, and its state: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/job.h"
#include "octet/model_options.h"
#include "octet/picture.h"

namespace octet {

enum class Stage : uint8_t { text, load, denoise, decode };
template <>
struct Words<Stage> {
  static constexpr Word<Stage> list[] = {{Stage::text, "text"},
                                         {Stage::load, "load"},
                                         {Stage::denoise, "denoise"},
                                         {Stage::decode, "decode"}};
};

struct RenderProgress {
  Stage stage = Stage::text;
  int64_t done = 0, total = 0;  // layers, bytes, steps of all images, images
  double fraction = 0;          // of the image that is being decoded, from 0 to 1
  double seconds = 0;           // of the last step, when denoising
  double eta_s = -1;            // until the call ends, estimated; negative: unknown
};

// Return false to stop: pictures already denoised are still decoded and delivered, and the call
// throws Cancelled.
using OnRenderProgress = std::function<bool(const RenderProgress&)>;

struct EngineInfo;

struct RenderCallbacks {
  OnRenderProgress progress = {};
  // Before anything is loaded, by generate() alone: where weights go. An Engine has info().
  std::function<void(const EngineInfo&)> plan = {};
  std::function<void(const TextFeatures&)> text = {};  // of the caption, before the first step
  // After each step: a preview of the picture, by a linear map from the latent to RGB.
  std::function<void(const Preview&)> preview = {};
  int preview_every = 1;                               // steps; the last step always has one
  std::function<void(const LatentStep&)> latent = {};  // after each step, for comparisons
  std::function<void(const Picture&)> picture = {};    // each as soon as it is ready
  // About the request, before anything runs; they are in the report, too.
  std::function<void(const Sentence&)> warning = {};
  // What will be rendered next, or an empty job while nobody knows. Asked between steps until it
  // names one. Its texts are encoded there and then if the text encoder stays on the device and
  // there is room, so that its render() finds them; this picture stays the same to the last bit.
  std::function<Job()> upcoming = {};
};

struct PartPlace {
  std::string part = {};
  // Of all of it, or of the farthest of its layers.
  Residency where = Residency::device;
  uint64_t bytes = 0;       // of its weights, as they are used
  std::string device = {};  // "cuda:1": where it runs, if the engine has two devices
  // The same bytes by where they are between uses.
  uint64_t device_bytes = 0, host_bytes = 0, file_bytes = 0;
  // Layers that every run needs; those that are neither here nor there are read from files.
  int layers = 0, layers_on_device = 0, layers_on_host = 0;
};

// What a job is expected to take.
struct Estimate {
  double seconds = -1;        // from what this engine has measured so far; negative: unknown
  uint64_t device_bytes = 0;  // of weights that stay there, and of work at the job's size
  uint64_t host_bytes = 0;    // of weights that stay there
};

// What an engine is doing right now. With two devices, numbers are of both together.
struct EngineState {
  bool loaded = false;
  bool busy = false;             // a call is under way
  RenderProgress progress = {};  // of that call, as last reported
  uint64_t used_bytes = 0;       // of the device's memory, by this engine
  uint64_t peak_bytes = 0;       // the most of it since the last picture began
  uint64_t free_bytes = 0;       // device memory that any process may use; 0: unknown
  double joules = 0;             // that the device has drawn since the model was loaded; 0: unknown
};

struct EngineInfo {
  std::string family = {};  // "ideogram4"
  std::string device = {};  // in words
  std::vector<std::string> networks = {};
  std::vector<std::string> branches = {};  // of a guided step
  bool takes_negative = false;             // a negative prompt
  std::vector<PartPlace> plan = {};        // in the order of use
  uint64_t work_bytes = 0;       // estimated for activations, at the size that was planned for
  uint64_t buffer_bytes = 0;     // of device memory, for weights that come and go during the steps
  uint64_t streamed_bytes = 0;   // of weights that come to the device in each step
  uint64_t read_bytes = 0;       // of these, from files
  uint64_t planned_bytes = 0;    // of device memory, by weights that stay, buffers and work
  uint64_t limit_bytes = 0;      // `max_memory`; 0: none
  uint64_t context_bytes = 0;    // of these, taken by the GPU's context and its kernels
  uint64_t available_bytes = 0;  // device memory, when the plan was made
  uint64_t used_bytes = 0;       // device memory, now
  std::vector<Lora> loras = {};
  int token_side = 0;     // pixels: both sides of a picture must be multiples of it
  PictureSize size = {};  // default
  std::vector<PresetInfo> presets = {};
};

}  // namespace octet
