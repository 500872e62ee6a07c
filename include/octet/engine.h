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
// load(), unload(), render(), warm_up() and set_loras() wait until the call before them has ended;
// all others never wait, whatever is under way: a server checks requests while a picture is made.
// Callbacks run on the thread that called, and may call those that never wait, and no others.
// Several engines work side by side, but two on one device share its memory and its time:
// one engine per device is the rule. Weights do not change once they are loaded.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "octet/cancelled.h"
#include "octet/export.h"
#include "octet/job.h"
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
  ~Engine();  // ends a call of another thread as cancel() does, and waits for it
  Engine(Engine&& other) noexcept;
  Engine& operator=(Engine&& other) noexcept;

  // Releases what was loaded and loads this. All files are checked before any weight is read. When
  // it throws (a bad file, no memory, cancel()), nothing is loaded, and load() may be called again.
  // `lazy`: parts are loaded when the first picture needs them.
  // `stop` ends it with Cancelled, also before it begins.
  void load(const ModelOptions& options, const OnRenderProgress& progress = {}, bool lazy = false,
            std::stop_token stop = {});
  void unload();
  bool is_loaded() const;

  // The request as it will be rendered: text, tokens, size, steps. Throws InvalidRequest
  // (octet/invalid_request.h) naming the field for one that makes no sense. Reads no files.
  Job check(const PictureRequest& request) const;

  // Throws Error for what goes wrong and for a job that was checked before the latest load(),
  // OutOfMemory (octet/out_of_memory.h) where memory is what is missing, Cancelled after cancel(),
  // on the request's stop or when `progress` says so; the engine stays loaded.
  RenderReport render(const Job& job, const RenderCallbacks& callbacks = {});
  RenderReport render(const PictureRequest& request, const RenderCallbacks& callbacks = {}) {
    return render(check(request), callbacks);
  }

  Estimate estimate(const Job& job) const;
  EngineState state() const;

  // Does ahead of time what the first picture of a size would wait for: loads what is missing,
  // chooses kernels by running a few steps, and makes the map of previews.
  void warm_up(PictureSize size = {}, bool previews = false, std::stop_token stop = {});

  // Merges these in place of those before. Of networks on the device, weights that none of them
  // changes stay as they are; others are loaded anew. When it throws, the LoRAs before it are still
  // there.
  void set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress = {});

  // Ends the call that is under way, if there is one, with Cancelled: within one layer of a
  // network. One that comes later is not hit: that is what PictureRequest::stop is for.
  void cancel() noexcept;

  EngineInfo info() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet
