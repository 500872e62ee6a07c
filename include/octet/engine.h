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
// call waits until the one before it has ended; cancel(), info() and is_loaded() never wait.
// Callbacks run on the thread that called, and may call nothing of the engine but cancel() and
// info(). Several engines work side by side, but two on one device share its memory and its time:
// one engine per device is the rule. Weights do not change once they are loaded.
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

// The plan as a table for people.
OCTET_API std::string plan_text(const EngineInfo& info);

// Times, launches and tokens of a further picture of the same model.
OCTET_API void add_report(RenderReport& total, const RenderReport& further);

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

  // Merges these in place of those before. Of networks on the device, weights that none of them
  // changes stay as they are; others are loaded anew. When it throws, the LoRAs before it are still
  // there.
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
