// _octet.Engine: a model that stays loaded. The package adds keyword arguments, defaults, and
// pictures in forms other than bytes.
#include "octet/engine.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stop_token>

#include "base/per_thread.h"
#include "octet/model_options.h"
#include "python/choices.h"
#include "python/conversation.h"
#include "python/record.h"

namespace octet::python {
namespace {

using nb::literals::operator""_a;
using Callback = std::optional<nb::callable>;
using Values = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

// The engines whose callbacks this thread is running. They must not be called again: such a call
// would wait for its own callback.
std::vector<const void*>& called_back_by() {
  static PerThread<std::vector<const void*>> engines;
  return engines.get();
}

class PythonEngine {
 public:
  PythonEngine() : engine_(std::make_unique<Engine>()) {}
  ~PythonEngine() {
    const Unlocked unlocked;
    engine_.reset();
  }

  Engine& get() {
    if (forks_ != fork_count()) {
      raise_error(
          "this process was forked after the engine was loaded, and lacks the engine's threads; "
          "load one in the child, or start processes with \"spawn\"");
    }
    return *engine_;
  }

  // Ends a call of another thread. Programs close engines also while Python exits.
  void unload() {
    check_caller();
    get().cancel();
    if (Conversation::have_ended()) {
      const Unlocked unlocked;
      return engine_->unload();
    }
    hold({}, [](Engine& engine, const OnRenderProgress&, Conversation&) { engine.unload(); });
  }

  // Runs call(engine, on_progress, conversation) on a thread of its own.
  template <class Call>
  void hold(const Callback& progress, Call&& call) {
    Engine& engine = get();
    check_caller();
    Conversation conversation;
    const OnRenderProgress on_progress = [&](const RenderProgress& state) {
      bool goes_on = true;
      if (!progress) return true;
      return conversation.ask([&] { goes_on = !(*progress)(state).is(nb::handle(Py_False)); }) &&
             goes_on;
    };
    called_back_by().push_back(this);
    const Leaving leaving;
    conversation.hold([&] { call(engine, on_progress, conversation); }, [&] { engine.cancel(); });
  }

 private:
  void check_caller() const {
    const std::vector<const void*>& callers = called_back_by();
    if (std::find(callers.begin(), callers.end(), this) == callers.end()) return;
    raise_error(
        "a callback may call only cancel(), check(), estimate(), state and info of its own engine");
  }

  struct Leaving {
    ~Leaving() { called_back_by().pop_back(); }
  };

  std::unique_ptr<Engine> engine_;
  uint32_t forks_ = fork_count();
};

// Checked here: to the engine a noise with a name is a file's, whose faults are not the request's.
void take_noise(const Engine& engine, const Values& noise, PictureRequest& request) {
  LatentShape latents{};
  {
    const Unlocked unlocked;
    latents = engine.check(request).latents();
  }
  std::string shape;
  for (size_t i = 0; i < noise.ndim(); ++i) {
    shape += (i > 0 ? ", " : "") + std::to_string(noise.shape(i));
  }
  const std::string expected =
      std::to_string(latents.tokens) + ", " + std::to_string(latents.channels);
  if (shape != expected) {
    raise_invalid_request(
        "`noise` is [" + shape + "], expected [" + expected + "] for a picture of this size",
        "noise");
  }
  request.noise.assign(noise.data(), noise.data() + noise.size());
  if (!std::ranges::all_of(request.noise, [](float value) { return std::isfinite(value); })) {
    raise_invalid_request("`noise` has a NaN or an infinity, expected numbers around 0", "noise");
  }
  request.noise_name = "an array";
}

std::stop_token token_of(const std::stop_source* stop) {
  return stop != nullptr ? stop->get_token() : std::stop_token();
}

void load(PythonEngine& self, const std::string& model, const std::string& base,
          const std::string& fallback, const std::map<std::string, std::string>& parts,
          const std::vector<Lora>& loras, bool guided, const std::string& device, int threads,
          const std::string& activations, const std::string& linears, const std::string& attention,
          const std::string& text_encoder_linears, const std::string& tuning,
          const std::string& convention, bool require_int8, bool cache_weights,
          const std::vector<std::pair<std::string, std::string>>& keep, uint64_t max_memory,
          bool lazy, const std::stop_source* stop, const Callback& progress) {
  ModelOptions options;
  options.model = model;
  options.base = base;
  options.fallback = fallback;
  options.parts = parts;
  options.loras = loras;
  options.guided = guided;
  options.device = device;
  options.threads = threads;
  options.activations = value_of<Activations>("activations", activations);
  options.linears = value_of<Linears>("linears", linears);
  options.attention = value_of<AttentionMode>("attention", attention);
  options.text_encoder_linears =
      value_of("text_encoder_linears", text_encoder_linears, {Linears::int8, Linears::floating});
  options.tuning = value_of<Tuning>("tuning", tuning);
  options.convention = value_of<Convention>("convention", convention);
  options.require_int8 = require_int8;
  options.cache_weights = cache_weights;
  for (const auto& [part, where] : keep) {
    options.keep.push_back({part, value_of<Residency>("keep", where)});
  }
  options.max_memory = max_memory;
  self.hold(progress, [&](Engine& engine, const OnRenderProgress& on_progress, Conversation&) {
    engine.load(options, on_progress, lazy, token_of(stop));
  });
}

Job check(PythonEngine& self, const std::string& caption, bool any_caption,
          const std::string& negative, std::pair<int, int> size, const std::string& preset,
          int steps, const std::vector<float>& guidance, uint64_t seed,
          const std::optional<Values>& noise, int images,
          const std::optional<std::vector<Lora>>& loras, const std::stop_source* stop) {
  PictureRequest request;
  request.caption = caption;
  request.any_caption = any_caption;
  request.negative = negative;
  request.size = {size.first, size.second};
  request.preset = preset;
  request.steps = steps;
  request.guidance = guidance;
  request.seed = seed;
  request.images = images;
  request.loras = loras;
  request.stop = token_of(stop);
  const Engine& engine = self.get();
  if (noise) take_noise(engine, *noise, request);
  const Unlocked unlocked;
  return engine.check(request);
}

RenderReport render(PythonEngine& self, const Job& job, const Callback& progress,
                    const Callback& preview, int preview_every, const nb::callable& picture) {
  RenderReport report;
  self.hold(progress, [&](Engine& engine, const OnRenderProgress& on_progress,
                          Conversation& conversation) {
    RenderCallbacks callbacks;
    callbacks.progress = on_progress;
    if (preview) {
      callbacks.preview = [&](const Preview& rough) {
        conversation.ask([&] { (*preview)(rough); });
      };
    }
    callbacks.preview_every = preview_every;
    callbacks.picture = [&](const Picture& made) { conversation.ask([&] { picture(made); }); };
    report = engine.render(job, callbacks);
  });
  return report;
}

void warm_up(PythonEngine& self, std::pair<int, int> size, bool previews,
             const std::stop_source* stop) {
  self.hold({}, [&](Engine& engine, const OnRenderProgress&, Conversation&) {
    engine.warm_up({size.first, size.second}, previews, token_of(stop));
  });
}

}  // namespace

void bind_engine(nb::module_& module) {
  bind_engine_records(module);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Conversation::end_all));
  module.def("parse_lora", &parse_lora, "text"_a);
  nb::class_<std::stop_source>(module, "Stop",
                               "Ends the calls that it was passed to, even before they begin.")
      .def(nb::init<>())
      .def("__init__", [](std::stop_source*, nb::args,
                          nb::kwargs) { raise_wrong_type("Stop() takes no arguments", ""); })
      .def(
          "request", [](std::stop_source& stop) { stop.request_stop(); }, "From any thread.")
      .def_prop_ro("requested", &std::stop_source::stop_requested);
  nb::class_<PythonEngine>(module, "Engine", "A model that stays loaded.")
      .def(nb::init<>())
      .def("load", &load, "model"_a, nb::kw_only(), "base"_a, "fallback"_a, "parts"_a, "loras"_a,
           "guided"_a, "device"_a, "threads"_a, "activations"_a, "linears"_a, "attention"_a,
           "text_encoder_linears"_a, "tuning"_a, "convention"_a, "require_int8"_a,
           "cache_weights"_a, "keep"_a, "max_memory"_a, "lazy"_a, "stop"_a.none(),
           "progress"_a.none())
      .def("unload", &PythonEngine::unload)
      .def_prop_ro("is_loaded", [](PythonEngine& self) { return self.get().is_loaded(); })
      .def("check", &check, "caption"_a, nb::kw_only(), "any_caption"_a, "negative"_a, "size"_a,
           "preset"_a, "steps"_a, "guidance"_a, "seed"_a, "noise"_a.none(), "images"_a,
           "loras"_a.none(), "stop"_a.none())
      .def("render", &render, "job"_a, nb::kw_only(), "progress"_a.none(), "preview"_a.none(),
           "preview_every"_a, "picture"_a)
      .def(
          "estimate", [](PythonEngine& self, const Job& job) { return self.get().estimate(job); },
          "job"_a)
      .def("state", [](PythonEngine& self) { return self.get().state(); })
      .def("warm_up", &warm_up, "size"_a, "previews"_a, "stop"_a.none())
      .def(
          "set_loras",
          [](PythonEngine& self, const std::vector<Lora>& loras, const Callback& progress) {
            self.hold(progress, [&](Engine& engine, const OnRenderProgress& on_progress,
                                    Conversation&) { engine.set_loras(loras, on_progress); });
          },
          "loras"_a, "progress"_a.none())
      .def("cancel", [](PythonEngine& self) { self.get().cancel(); })
      .def("info", [](PythonEngine& self) { return self.get().info(); });
}

}  // namespace octet::python
