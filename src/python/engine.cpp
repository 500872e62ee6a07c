// _octet.Engine: a model that stays loaded. Keyword arguments, defaults and pictures in other forms
// than bytes are the package's.
#include "octet/engine.h"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <memory>

#include "octet/caption.h"
#include "octet/lora.h"
#include "python/choices.h"
#include "python/conversation.h"
#include "python/record.h"

namespace octet::python {
namespace {

using nb::literals::operator""_a;
using Callback = std::optional<nb::callable>;
using Values = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

// The engines whose callbacks this thread is in. One of them must not be called again: it would
// wait for its own callback.
thread_local std::vector<const void*> called_back_by;

class PythonEngine {
 public:
  PythonEngine() : engine_(std::make_unique<Engine>()) {}
  ~PythonEngine() {
    if (forks_ != fork_count()) {
      engine_.release();  // its threads are not there to be joined
      return;
    }
    const nb::gil_scoped_release released;
    engine_.reset();
  }

  Engine& get() {
    if (forks_ != fork_count()) {
      raise_error(
          "this process was forked after the engine was loaded, and its threads stayed behind; "
          "load one in the child, or start processes with \"spawn\"");
    }
    return *engine_;
  }

  // `call(engine, on_progress, conversation)` on a thread of its own.
  template <class Call>
  void hold(const Callback& progress, Call&& call) {
    Engine& engine = get();
    if (std::find(called_back_by.begin(), called_back_by.end(), this) != called_back_by.end()) {
      raise_error("a callback may call cancel() and info() of its engine, and nothing else");
    }
    Conversation conversation;
    const OnRenderProgress on_progress = [&](const RenderProgress& state) {
      bool goes_on = true;
      if (!progress) return true;
      return conversation.ask([&] { goes_on = !(*progress)(state).is(nb::handle(Py_False)); }) &&
             goes_on;
    };
    called_back_by.push_back(this);
    const Leaving leaving;
    conversation.hold([&] { call(engine, on_progress, conversation); }, [&] { engine.cancel(); });
  }

 private:
  struct Leaving {
    ~Leaving() { called_back_by.pop_back(); }
  };

  std::unique_ptr<Engine> engine_;
  uint32_t forks_ = fork_count();
};

void load(PythonEngine& self, const std::string& model, const std::string& base,
          const std::string& fallback, const std::map<std::string, std::string>& parts,
          const std::vector<Lora>& loras, bool guided, const std::string& device, int threads,
          const std::string& activations, const std::string& linears, const std::string& attention,
          const std::string& text_encoder_linears, const std::string& tuning,
          const std::string& convention, bool require_int8, bool cache_weights,
          const std::vector<std::pair<std::string, std::string>>& keep, uint64_t max_memory,
          bool lazy, const Callback& progress) {
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
    engine.load(options, on_progress, lazy);
  });
}

RenderReport render(PythonEngine& self, const std::string& caption, bool any_caption,
                    std::pair<int, int> size, const std::string& preset, int steps,
                    const std::vector<float>& guidance, uint64_t seed,
                    const std::optional<Values>& noise, int images, const Callback& progress,
                    const Callback& preview, const nb::callable& picture) {
  PictureRequest request;
  request.caption = caption;
  request.any_caption = any_caption;
  request.size = {size.first, size.second};
  request.preset = preset;
  request.steps = steps;
  request.guidance = guidance;
  request.seed = seed;
  if (noise) {
    request.noise.assign(noise->data(), noise->data() + noise->size());
    request.noise_name = "an array";
  }
  request.images = images;
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
    callbacks.picture = [&](const Picture& made) { conversation.ask([&] { picture(made); }); };
    report = engine.render(request, callbacks);
  });
  return report;
}

template <class T>
nb::bytes pixels(const T& picture) {
  return nb::bytes(reinterpret_cast<const char*>(picture.rgb.data()), picture.rgb.size());
}

// A picture, or a preview.
template <class T>
nb::bytes png(const T& picture) {
  std::vector<uint8_t> bytes;
  {
    const nb::gil_scoped_release released;
    bytes = encode_png(picture);
  }
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void bind_pictures(nb::module_& module) {
  module.def("encode_png", &png<Picture>, "picture"_a);
  module.def("encode_png", &png<Preview>, "preview"_a);
  Record<RenderProgress>(module, "Progress", "How far an engine is.")
      .value("stage", [](const RenderProgress& state) { return word_of(state.stage); })
      .field("done", &RenderProgress::done)
      .field("total", &RenderProgress::total)
      .field("seconds", &RenderProgress::seconds)
      .value("eta_s", [](const RenderProgress& state) {
        return state.eta_s < 0 ? std::optional<double>() : state.eta_s;
      });
  Record<Preview>(module, "Preview", "A small, rough picture of what a step led to.")
      .field("image", &Preview::image)
      .field("step", &Preview::step)
      .field("steps", &Preview::steps)
      .field("width", &Preview::width)
      .field("height", &Preview::height)
      .value("rgb", &pixels<Preview>);
  Record<Picture>(module, "Picture", "A picture as bytes.")
      .field("index", &Picture::index)
      .field("seed", &Picture::seed)
      .field("width", &Picture::width)
      .field("height", &Picture::height)
      .value("rgb", &pixels<Picture>)
      .value("look", [](const Picture& picture) { return word_of(picture.look); })
      .field("metadata", &Picture::metadata);
}

void bind_report(nb::module_& module) {
  Record<KernelUse>(module, "KernelUse", "What a class of linears ran on.")
      .field("layer", &KernelUse::layer)
      .field("path", &KernelUse::path)
      .field("kernel", &KernelUse::kernel)
      .field("launches", &KernelUse::launches)
      .field("us", &KernelUse::us)
      .field("tops", &KernelUse::tops);
  Record<OpShare>(module, "OpShare", "The time of an operation.")
      .field("op", &OpShare::op)
      .field("calls", &OpShare::calls)
      .field("us", &OpShare::us);
  Record<LinearCount>(module, "LinearCount", "How linears ran, by their number.")
      .field("int8", &LinearCount::int8)
      .field("protected", &LinearCount::protected_)
      .field("kept", &LinearCount::kept)
      .field("floating", &LinearCount::floating)
      .field("fake", &LinearCount::fake);
  Record<RenderReport>(module, "RenderReport", "What a call of render() did.")
      .field("device", &RenderReport::device)
      .field("width", &RenderReport::width)
      .field("height", &RenderReport::height)
      .field("caption", &RenderReport::caption)
      .field("preset", &RenderReport::preset)
      .field("text_tokens", &RenderReport::text_tokens)
      .field("steps", &RenderReport::steps)
      .field("checkpoint", &RenderReport::checkpoint)
      .field("linears", &RenderReport::linears)
      .field("text_linears", &RenderReport::text_linears)
      .field("places", &RenderReport::places)
      .field("recorded_steps", &RenderReport::recorded_steps)
      .field("kernels", &RenderReport::kernels)
      .field("ops", &RenderReport::ops)
      .field("text_cached", &RenderReport::text_cached)
      .field("text_s", &RenderReport::text_s)
      .field("load_s", &RenderReport::load_s)
      .field("denoise_s", &RenderReport::denoise_s)
      .field("decode_s", &RenderReport::decode_s)
      .field("peak_bytes", &RenderReport::peak_bytes);
}

void bind_info(nb::module_& module) {
  nb::class_<Lora>(module, "Lora", "A LoRA that is merged into the networks.")
      .def(
          "__init__",
          [](Lora* at, const std::string& file, float strength,
             const std::vector<std::string>& networks) {
            new (at) Lora{file, strength, networks};
          },
          "file"_a, "strength"_a = 1.0f, "networks"_a = std::vector<std::string>())
      .def_ro("file", &Lora::file)
      .def_ro("strength", &Lora::strength)
      .def_ro("networks", &Lora::networks)
      .def(nb::self == nb::self)
      .def("__repr__", &record_text)
      .def("as_dict", &plain)
      .attr("__match_args__") = nb::make_tuple("file", "strength", "networks");
  Record<PresetInfo>(module, "PresetInfo", "Steps, guidance and times that go with a model.")
      .field("name", &PresetInfo::name)
      .field("official_name", &PresetInfo::official_name)
      .field("steps", &PresetInfo::steps);
  Record<PartPlace>(module, "PartPlace", "Where a part's weights are between two uses.")
      .field("part", &PartPlace::part)
      .value("where", [](const PartPlace& place) { return word_of(place.where); })
      .field("bytes", &PartPlace::bytes);
  Record<EngineInfo>(module, "EngineInfo", "What is loaded.")
      .field("family", &EngineInfo::family)
      .field("device", &EngineInfo::device)
      .field("networks", &EngineInfo::networks)
      .field("plan", &EngineInfo::plan)
      .field("work_bytes", &EngineInfo::work_bytes)
      .field("available_bytes", &EngineInfo::available_bytes)
      .field("used_bytes", &EngineInfo::used_bytes)
      .field("loras", &EngineInfo::loras)
      .field("token_side", &EngineInfo::token_side)
      .value("size",
             [](const EngineInfo& info) { return std::pair(info.size.width, info.size.height); })
      .field("presets", &EngineInfo::presets);
}

void bind_captions(nb::module_& module) {
  Record<CaptionFinding>(module, "CaptionFinding", "What is wrong with a caption.")
      .field("path", &CaptionFinding::path)
      .value("rule", [](const CaptionFinding& finding) { return finding.rule.text(); })
      .value("severity", [](const CaptionFinding& finding) { return word_of(finding.severity); })
      .field("fixable", &CaptionFinding::fixable);
  Record<CaptionReport>(module, "CaptionReport", "What a check of a caption found.")
      .field("findings", &CaptionReport::findings)
      .field("canonical", &CaptionReport::canonical)
      .value("valid", &CaptionReport::valid);
  module.def(
      "check_caption", [](const std::string& text) { return check_caption(text); }, "text"_a);
  module.def(
      "wrap_plain_text", [](const std::string& text) { return wrap_plain_text(text); }, "text"_a);
}

}  // namespace

void bind_engine(nb::module_& module) {
  bind_pictures(module);
  bind_report(module);
  bind_info(module);
  bind_captions(module);
  module.def("parse_lora", &parse_lora, "text"_a);
  nb::class_<PythonEngine>(module, "Engine", "A model that stays loaded.")
      .def(nb::init<>())
      .def("load", &load, "model"_a, nb::kw_only(), "base"_a, "fallback"_a, "parts"_a, "loras"_a,
           "guided"_a, "device"_a, "threads"_a, "activations"_a, "linears"_a, "attention"_a,
           "text_encoder_linears"_a, "tuning"_a, "convention"_a, "require_int8"_a,
           "cache_weights"_a, "keep"_a, "max_memory"_a, "lazy"_a, "progress"_a.none())
      .def("unload",
           [](PythonEngine& self) {
             self.hold({}, [](Engine& engine, const OnRenderProgress&, Conversation&) {
               engine.unload();
             });
           })
      .def_prop_ro("is_loaded", [](PythonEngine& self) { return self.get().is_loaded(); })
      .def("render", &render, "caption"_a, nb::kw_only(), "any_caption"_a, "size"_a, "preset"_a,
           "steps"_a, "guidance"_a, "seed"_a, "noise"_a.none(), "images"_a, "progress"_a.none(),
           "preview"_a.none(), "picture"_a)
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
