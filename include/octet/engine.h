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
// Threads: an engine makes one picture at a time. Its functions may be called from any thread.
// load(), unload(), render(), warm_up() and set_loras() wait until the previous call has ended; all
// others never wait, whatever is running: a server checks requests while a picture is rendered.
// Callbacks run on the calling thread and may call only those that never wait. Several engines can
// run side by side, but two on one device share its memory and its time: use one engine per device,
// or one for two devices that share each picture (ModelOptions::device).
// Weights do not change once they are loaded.
//
// Processes: an engine that was loaded before fork() is of no use in the child, where all of its
// functions throw Error; it may be destroyed or replaced there. Load an engine in the child.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "octet/error.h"
#include "octet/export.h"
#include "octet/job.h"
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
  // Ends the calls of other threads as cancel() does, and waits for them. In a callback of a call
  // of its own it cannot wait: that call ends with Cancelled, and releases the model. A call that
  // begins while the engine is being destroyed is an Error. (Its state is not in the object, but is
  // found by its address.)
  ~Engine();
  // What is moved from is an engine with nothing loaded.
  Engine(Engine&& other) noexcept;
  Engine& operator=(Engine&& other) noexcept;

  // Releases what was loaded and loads this model. All files are checked before any weight is read.
  // If it throws (a bad file, no memory, cancel(), `stop`), nothing is loaded, and load() may be
  // called again. `lazy`: parts are loaded when the first picture needs them. `stop` ends it with
  // Cancelled, even if it was requested before the call: a load that was stopped before its turn
  // leaves what is loaded.
  void load(const ModelOptions& options, const OnRenderProgress& progress = {}, bool lazy = false,
            std::stop_token stop = {});
  void unload();
  bool is_loaded() const;

  // The request as it will be rendered: text, tokens, size, steps. Throws InvalidRequest
  // (octet/invalid_request.h), which names the field, for a request that makes no sense. Reads no
  // files.
  Job check(const PictureRequest& request) const;

  // Throws Error for any failure and for a job that was checked before the last load(), OutOfMemory
  // (octet/out_of_memory.h) if memory runs out, Cancelled after cancel(), the request's `stop` or
  // when `progress` returns false; the engine stays loaded.
  RenderReport render(const Job& job, const RenderCallbacks& callbacks = {});
  RenderReport render(const PictureRequest& request, const RenderCallbacks& callbacks = {}) {
    return render(check(request), callbacks);
  }

  Estimate estimate(const Job& job) const;
  EngineState state() const;

  // Does ahead of time what the first picture of a size would wait for: loads what is missing,
  // chooses kernels by running a few steps, and fits the map for previews.
  void warm_up(PictureSize size = {}, bool previews = false, std::stop_token stop = {});

  // Replaces the merged LoRAs. In networks on the device, weights that no LoRA changes stay as they
  // are; others are loaded again. If it throws, the previous LoRAs are still in place.
  void set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress = {});

  // Ends the running call, if any, with Cancelled: within a layer or two of a network; on a GPU,
  // where a pass of a network is recorded after the second step, within one pass. It does not
  // affect later calls; PictureRequest::stop does.
  void cancel() noexcept;

  // Throws Error without a model, also while one is being loaded.
  EngineInfo info() const;
};

}  // namespace octet
