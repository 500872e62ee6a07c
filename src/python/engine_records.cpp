// What an engine takes and returns, as records: pictures, reports, jobs and captions.
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>

#include <cmath>

#include "octet/caption.h"
#include "octet/engine.h"
#include "python/record.h"

namespace octet::python {
namespace {

using nb::literals::operator""_a;

template <class T>
nb::bytes pixels(const T& picture) {
  return nb::bytes(reinterpret_cast<const char*>(picture.rgb.data()), picture.rgb.size());
}

std::vector<std::string> texts_of(const std::vector<Sentence>& sentences) {
  std::vector<std::string> texts;
  for (const Sentence& sentence : sentences) texts.push_back(said(sentence));
  return texts;
}

// A picture and its level, or a preview and its scale.
template <class T>
nb::bytes png(const T& picture, int level_or_scale) {
  std::vector<uint8_t> bytes;
  {
    const Unlocked unlocked;
    bytes = encode_png(picture, level_or_scale);
  }
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void bind_pictures(nb::module_& module) {
  module.def("encode_png", &png<Picture>, "picture"_a, "level"_a = 1);
  module.def("encode_png", &png<Preview>, "preview"_a, "scale"_a = 1);
  Record<RenderProgress>(module, "Progress", "The progress of an engine.")
      .value("stage", [](const RenderProgress& state) { return word_of(state.stage); })
      .OCTET_MEMBERS(RenderProgress, done, total, fraction, seconds)
      .value("eta_s", [](const RenderProgress& state) {
        return state.eta_s < 0 ? std::optional<double>() : state.eta_s;
      });
  Record<Preview>(module, "Preview", "A small, rough rendering of the latent after a step.")
      .OCTET_MEMBERS(Preview, image, step, steps, width, height)
      .value("rgb", &pixels<Preview>);
  Record<Picture>(module, "Picture", "A picture as bytes.")
      .OCTET_MEMBERS(Picture, index, seed, width, height)
      .value("rgb", &pixels<Picture>)
      .value("look", [](const Picture& picture) { return word_of(picture.look); })
      .field("metadata", &Picture::metadata);
}

void bind_report(nb::module_& module) {
  Record<KernelUse>(module, "KernelUse", "How a class of linears ran.")
      .OCTET_MEMBERS(KernelUse, layer, path, kernel, launches, us, tops);
  Record<OpShare>(module, "OpShare", "The time of an operation.")
      .OCTET_MEMBERS(OpShare, op, calls, us);
  Record<LinearCount>(module, "LinearCount", "How linears ran, by number of linears.")
      .field("int8", &LinearCount::int8)
      .field("protected", &LinearCount::protected_)
      .field("kept", &LinearCount::kept)
      .field("floating", &LinearCount::floating)
      .field("fake", &LinearCount::fake);
  Record<BranchUse>(module, "BranchUse", "One evaluation of a network within a step.")
      .OCTET_MEMBERS(BranchUse, name, network, steps, seconds);
  Record<RenderReport>(module, "RenderReport", "What a call of render() did.")
      .OCTET_MEMBERS(RenderReport, device, width, height, caption, negative, preset, text_tokens,
                     steps, checkpoint, linears, text_linears, places, recorded_steps, branches,
                     kernels, ops, text_cached)
      .value("warnings", [](const RenderReport& report) { return texts_of(report.warnings); })
      .OCTET_MEMBERS(RenderReport, text_s, load_s, denoise_s, decode_s, ahead_s, peak_bytes);
}

// The text of an object with __fspath__, and any other object as it is.
nb::object path_text(nb::object path) {
  return nb::hasattr(path, "__fspath__") ? path.attr("__fspath__")() : path;
}

// nanobind's own error has the whole signature, and several lines.
template <typename T>
T taken(const std::string& name, nb::handle value, const std::string& expected) {
  T made{};
  if (nb::try_cast(value, made)) return made;
  raise_wrong_type(
      "`" + name + "` is of type " + nb::type_name(value.type()).c_str() + "; expected " + expected,
      name);
}

// A float holds less than a number of Python.
float finite(const std::string& name, nb::handle value) {
  float number = 0;
  if (nb::isinstance<nb::int_>(value) && !nb::try_cast(value, number)) number = INFINITY;
  if (number == 0) number = taken<float>(name, value, "a number");
  if (std::isfinite(number)) return number;
  const std::string said =
      nb::isinstance<nb::float_>(value) ? nb::cast<std::string>(nb::repr(value)) : "out of range";
  raise_invalid_request("`" + name + "` is " + said + ", expected a finite number", name);
}

void bind_info(nb::module_& module) {
  nb::class_<Lora>(module, "Lora", "A LoRA to merge into the networks.")
      .def(
          "__init__",
          [](Lora* at, nb::object file, nb::object strength, nb::object networks) {
            new (at) Lora{taken<std::string>("file", path_text(file), "a path"),
                          finite("strength", strength),
                          taken<std::vector<std::string>>("networks", networks, "a list of names")};
          },
          "file"_a.none(), "strength"_a.none() = 1.0f, "networks"_a.none() = nb::make_tuple())
      .def("__init__",
           [](Lora*, nb::args, nb::kwargs) {
             raise_wrong_type("Lora() takes a file, its strength and names of networks", "");
           })
      .def_ro("file", &Lora::file)
      .def_ro("strength", &Lora::strength)
      .def_ro("networks", &Lora::networks)
      .def(nb::self == nb::self)
      .def("__repr__", &record_text)
      .def("as_dict", &plain)
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(
                 self.type(),
                 nb::make_tuple(self.attr("file"), self.attr("strength"), self.attr("networks")));
           })
      .attr("__match_args__") = nb::make_tuple("file", "strength", "networks");
  Record<PresetInfo>(module, "PresetInfo", "Steps, guidance and times defined by a model.")
      .OCTET_MEMBERS(PresetInfo, name, official_name, steps);
  Record<PartPlace>(module, "PartPlace", "Where a part's weights are kept between uses.")
      .field("part", &PartPlace::part)
      .value("where", [](const PartPlace& place) { return word_of(place.where); })
      .field("bytes", &PartPlace::bytes)
      .field("device", &PartPlace::device);
  Record<EngineInfo>(module, "EngineInfo", "What is loaded.")
      .OCTET_MEMBERS(EngineInfo, family, device, networks, branches, takes_negative, plan,
                     work_bytes, available_bytes, used_bytes, loras, token_side)
      .value("size",
             [](const EngineInfo& info) { return std::pair(info.size.width, info.size.height); })
      .field("presets", &EngineInfo::presets);
}

// What is known about a job and the engine that will render it.
void bind_jobs(nb::module_& module) {
  Record<Job>(module, "Job", "A request that was checked by its engine.")
      .method("__init__",
              [](Job*, nb::args, nb::kwargs) {
                raise_wrong_type("a Job is what Engine.check() returns, not made by itself", "");
              })
      .method("__reduce__",
              [](nb::handle) -> nb::object {
                raise_wrong_type(
                    "a Job belongs to its engine; send the request to another process, and check "
                    "it there",
                    "");
              })
      .value("size", [](const Job& job) { return std::pair(job.size().width, job.size().height); })
      .value("latents",
             [](const Job& job) { return std::pair(job.latents().tokens, job.latents().channels); })
      .value("steps", &Job::steps)
      .value("text_tokens", &Job::text_tokens)
      .value("branches", &Job::branches)
      .value("warnings", [](const Job& job) { return texts_of(job.warnings()); });
  Record<Estimate>(module, "Estimate", "What a job is expected to take.")
      .value("seconds",
             [](const Estimate& estimate) {
               return estimate.seconds < 0 ? std::optional<double>() : estimate.seconds;
             })
      .OCTET_MEMBERS(Estimate, device_bytes, host_bytes);
  Record<EngineState>(module, "EngineState", "What an engine is doing.")
      .OCTET_MEMBERS(EngineState, loaded, busy, progress, used_bytes, peak_bytes, free_bytes,
                     joules);
}

void bind_captions(nb::module_& module) {
  Record<CaptionFinding>(module, "CaptionFinding", "What is wrong with a caption.")
      .field("path", &CaptionFinding::path)
      .value("rule", [](const CaptionFinding& finding) { return said(finding.rule); })
      .value("severity", [](const CaptionFinding& finding) { return word_of(finding.severity); })
      .field("fixable", &CaptionFinding::fixable);
  Record<CaptionReport>(module, "CaptionReport", "What a check of a caption found.")
      .OCTET_MEMBERS(CaptionReport, findings, canonical)
      .value("valid", &CaptionReport::valid);
  module.def(
      "check_caption", [](const std::string& text) { return check_caption(text); }, "text"_a);
  module.def(
      "wrap_plain_text", [](const std::string& text) { return wrap_plain_text(text); }, "text"_a);
}

}  // namespace

void bind_engine_records(nb::module_& module) {
  bind_pictures(module);
  bind_report(module);
  bind_info(module);
  bind_jobs(module);
  bind_captions(module);
}

}  // namespace octet::python
