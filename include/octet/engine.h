// A model that stays loaded, and pictures from it.
//
//   octet::ModelOptions options;
//   options.model = "ideogram-4-int8";
//   octet::Engine engine(options);
//
//   octet::PictureRequest request;
//   request.caption = octet::read_caption("poster.json");
//   engine.render(request, {.picture = [](const octet::Picture& picture) {
//     octet::write_picture("poster.png", picture);
//   }});
//
// Threads: an engine makes one picture at a time. Its functions may be called from any thread; a
// call waits until the one before it has ended, except cancel() and info(), which never wait.
// Callbacks run on the thread that called, and may call nothing of the engine but cancel() and
// info(). Several engines work side by side, but two on one device share its memory and its time:
// one engine per device is the rule. Weights do not change once they are loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "octet/cancelled.h"
#include "octet/export.h"
#include "octet/picture.h"

namespace octet {

enum class Activations : uint8_t { bf16, f32 };   // type of activations, and of weights not in INT8
enum class Linears : uint8_t { int8, floating };  // the large linears of the networks
enum class Tuning : uint8_t { off, missing, all };  // GEMM kernels chosen by measuring first
// Whose arithmetic is followed where the public implementations differ.
enum class Convention : uint8_t { official, diffusers };

// Where the weights of a part are between two uses.
enum class Residency : uint8_t {
  device,    // in the device's memory
  host,      // ready for the device in (pinned) host memory
  streamed,  // in their files: read for each use, and released
};

// A LoRA that is merged into the networks.
struct Lora {
  std::string file;
  float strength = 1;
  // Names of the networks that it changes ("conditional", or "all"); none: those that the file
  // names, or the first where it names none.
  std::vector<std::string> networks;
  bool operator==(const Lora&) const = default;
};

struct KeepRule {
  std::string part;  // "text_encoder", "transformer", ...; empty: all
  Residency where = Residency::device;
};

// What a model is.
struct ModelOptions {
  // A folder as Hugging Face lays out a pipeline, owner/name of one that was pulled; or the
  // transformer alone: a folder or a file, which may hold both networks.
  std::string model;
  std::string base;      // such a folder again, for parts and weights that `model` lacks
  std::string fallback;  // another, for parts that neither has
  // Parts from elsewhere, by name: "unconditional_transformer", "text_encoder", "vae", "tokenizer".
  // Their files or folders, or a pipeline that has them.
  std::map<std::string, std::string> parts;
  std::vector<Lora> loras;
  // False: no picture is guided, and the network that guidance takes need not be there.
  bool guided = true;

  std::string device = "auto";  // auto, ref, cpu, cuda[:i]
  int threads = 0;              // of the host; 0: one per physical core
  Activations activations = Activations::bf16;
  Linears linears = Linears::int8;
  Tuning tuning = Tuning::missing;
  Convention convention = Convention::official;
  // An Error when a large linear that its checkpoint does not protect ran as anything but native
  // INT8.
  bool require_int8 = false;
  // Keep the INT8 codes of a model that is not stored so on disk, for the next time; with LoRAs
  // always.
  bool cache_weights = false;

  std::vector<KeepRule> keep;  // the last that fits counts; parts without one: by free memory
  uint64_t max_memory = 0;     // bytes of the device's that may be taken; 0: what is free
};

// --- progress ---

enum class Stage : uint8_t { text, load, denoise, decode };

struct RenderProgress {
  Stage stage = Stage::text;
  int64_t done = 0, total = 0;  // layers, bytes, steps of all images, images
  double seconds = 0;           // of the last step, when denoising
  double eta_s = -1;            // until the call ends, as far as is known; negative: unknown
};

// False ends the work: pictures that are denoised by then are still decoded and handed over, and
// the call throws Cancelled.
using OnRenderProgress = std::function<bool(const RenderProgress&)>;

struct RenderCallbacks {
  OnRenderProgress progress;
  // After each step: what the picture is about to become, by a linear map from the latent to RGB.
  std::function<void(const Preview&)> preview;
  std::function<void(const LatentStep&)> latent;  // after each step, for comparisons
  std::function<void(const Picture&)> picture;    // each as soon as it is ready
};

// --- what is known of a loaded model ---

struct PartPlace {
  std::string part;
  Residency where = Residency::device;
  uint64_t bytes = 0;  // of its weights, as they are used
};

struct EngineInfo {
  std::string family;  // "ideogram4"
  std::string device;  // in words
  std::vector<std::string> networks;
  std::vector<PartPlace> plan;   // in the order of use
  uint64_t work_bytes = 0;       // reckoned for activations at 1024 x 1024 pixels
  uint64_t available_bytes = 0;  // of the device, when the plan was made
  uint64_t used_bytes = 0;       // of the device, now
  std::vector<Lora> loras;
  int token_side = 0;  // pixels: both sides of a picture are multiples of it
};

// The plan as a table for people.
OCTET_API std::string plan_text(const EngineInfo& info);

class OCTET_API Engine {
 public:
  Engine();  // nothing is loaded
  explicit Engine(const ModelOptions& options, const OnRenderProgress& progress = {});
  ~Engine();
  Engine(Engine&& other) noexcept;
  Engine& operator=(Engine&& other) noexcept;

  // Releases what was loaded and loads this. All files are checked before any weight is read. When
  // it throws (a bad file, no memory, cancel()), nothing is loaded, and load() may be called again.
  // `lazy`: parts are loaded when the first picture needs them.
  void load(const ModelOptions& options, const OnRenderProgress& progress = {}, bool lazy = false);
  void unload();
  bool is_loaded() const;

  // Throws InvalidRequest (octet/invalid_request.h) for a request that makes no sense, Error for
  // what goes wrong, Cancelled after cancel() or when `progress` says so; the engine stays loaded.
  RenderReport render(const PictureRequest& request, const RenderCallbacks& callbacks = {});

  // Throws what render() would throw about the request alone; how large its latents are.
  LatentShape check(const PictureRequest& request);

  // Merges these in place of those before. Weights that none of them changes stay as they are. When
  // it throws, the LoRAs before it are still there.
  void set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress = {});

  // Ends the call that is under way, if there is one, with Cancelled: within one layer of a
  // network.
  void cancel() noexcept;

  EngineInfo info() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet
