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
// Threads: an engine makes one picture at a time. Its functions may be called from any thread; a
// call waits until the previous one has ended; cancel(), info() and is_loaded() never wait.
// Callbacks run on the calling thread and may call only cancel() and info() of the engine. Several
// engines can run side by side, but two on one device share its memory and its time: use one engine
// per device. Weights do not change once they are loaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "octet/cancelled.h"
#include "octet/export.h"
#include "octet/model_options.h"
#include "octet/picture_files.h"
#include "octet/rendering.h"

namespace octet {

// The plan as a human-readable table.
OCTET_API std::string plan_text(const EngineInfo& info);

// Adds times, launches and tokens of another picture from the same model.
OCTET_API void add_report(RenderReport& total, const RenderReport& further);

class OCTET_API Engine {
 public:
  Engine();  // nothing is loaded
  explicit Engine(const ModelOptions& options, const OnRenderProgress& progress = {});
  ~Engine();
  Engine(Engine&& other) noexcept;
  Engine& operator=(Engine&& other) noexcept;

  // Releases what was loaded and loads this model. All files are checked before any weight is read.
  // If it throws (a bad file, no memory, cancel()), nothing is loaded, and load() may be called
  // again. `lazy`: parts are loaded when the first picture needs them.
  void load(const ModelOptions& options, const OnRenderProgress& progress = {}, bool lazy = false);
  void unload();
  bool is_loaded() const;

  // Throws InvalidRequest (octet/invalid_request.h) for a request that makes no sense, Error for
  // any other failure, Cancelled after cancel() or when `progress` returns false; the engine stays
  // loaded.
  RenderReport render(const PictureRequest& request, const RenderCallbacks& callbacks = {});

  // Throws what render() would throw about the request alone; returns the shape of its latents.
  LatentShape check(const PictureRequest& request);

  // Replaces the merged LoRAs. In networks on the device, weights that no LoRA changes stay as they
  // are; others are loaded again. If it throws, the previous LoRAs are still in place.
  void set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress = {});

  // Ends the running call, if any, with Cancelled: within one layer of a network.
  void cancel() noexcept;

  EngineInfo info() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet
