// Checkpoints and devices: quantize, inspect, devices.
#include <nanobind/stl/optional.h>

#include <atomic>

#include "octet/devices.h"
#include "octet/inspect.h"
#include "octet/quantize.h"
#include "python/choices.h"
#include "python/conversation.h"
#include "python/record.h"

namespace octet::python {
namespace {

using nb::literals::operator""_a;

QuantizeReport run_quantize(QuantizeRequest request, const std::string& recipe,
                            const std::string& protect, const std::string& dialect,
                            const std::optional<nb::callable>& progress) {
  request.recipe = parse_recipe(recipe);
  request.protect = parse_protection(protect);
  request.dialect = value_of<OutputDialect>("dialect", dialect);
  QuantizeReport report;
  Conversation conversation;
  std::atomic<bool> cancelled = false;
  const auto on_step = [&](const QuantizeStep& step) {
    if (cancelled || !progress) return !cancelled;
    return conversation.ask([&] {
      if ((*progress)(step).is(nb::handle(Py_False))) cancelled = true;
    }) && !cancelled;
  };
  conversation.hold([&] { report = quantize(request, on_step); }, [&] { cancelled = true; });
  return report;
}

void bind_quantize(nb::module_& module) {
  Record<QuantizeStep>(module, "QuantizeStep", "The progress of quantize().")
      .value("stage", [](const QuantizeStep& step) { return word_of(step.stage); })
      .OCTET_MEMBERS(QuantizeStep, done, total, network);
  Record<ErrorPlace>(module, "ErrorPlace", "A channel that stands out.")
      .OCTET_MEMBERS(ErrorPlace, index, value);
  Record<LinearError>(module, "LinearError", "How far a linear in INT8 is from F32, as NRMSE.")
      .OCTET_MEMBERS(LinearError, network, module, n, k, rowwise, smoothquant, convrot, unquantized,
                     is_protected, worst_rows, worst_columns);
  Record<QuantizedNetwork>(module, "QuantizedNetwork", "What happened to a network's linears.")
      .field("network", &QuantizedNetwork::network)
      .field("int8", &QuantizedNetwork::int8)
      .field("protected", &QuantizedNetwork::protected_)
      .field("kept", &QuantizedNetwork::kept)
      .field("protected_modules", &QuantizedNetwork::protected_modules);
  Record<QuantizeReport>(module, "QuantizeReport", "What quantize() did.")
      .field("device", &QuantizeReport::device)
      .value("recipe", [](const QuantizeReport& report) { return to_string(report.recipe); })
      .OCTET_MEMBERS(QuantizeReport, activations, files, networks, errors, source_bytes,
                     output_bytes, resumed_tensors, verified, seconds);
  module.def(
      "quantize",
      [](const std::string& source, const std::string& out, const std::string& base,
         const std::string& network, const std::string& recipe, const std::string& protect,
         bool clip, const std::string& dialect, const std::string& statistics,
         const std::vector<std::string>& captions, bool any_caption, int calibration_steps,
         std::pair<int, int> calibration_size, uint64_t seed, uint64_t max_memory, bool measure,
         bool verify, const std::string& device, int threads,
         const std::optional<nb::callable>& progress) {
        QuantizeRequest request;
        request.source = source;
        request.out = out;
        request.base = base;
        request.network = network;
        request.clip = clip;
        request.statistics = statistics;
        request.captions = captions;
        request.any_caption = any_caption;
        request.calibration_steps = calibration_steps;
        request.calibration_size = {calibration_size.first, calibration_size.second};
        request.seed = seed;
        request.max_memory = max_memory;
        request.measure = measure;
        request.verify = verify;
        request.device = device;
        request.threads = threads;
        return run_quantize(std::move(request), recipe, protect, dialect, progress);
      },
      "source"_a, "out"_a, nb::kw_only(), "base"_a, "network"_a, "recipe"_a, "protect"_a, "clip"_a,
      "dialect"_a, "statistics"_a, "captions"_a, "any_caption"_a, "calibration_steps"_a,
      "calibration_size"_a, "seed"_a, "max_memory"_a, "measure"_a, "verify"_a, "device"_a,
      "threads"_a, "progress"_a.none());
}

void bind_inspect(nb::module_& module) {
  Record<TensorSummary>(module, "TensorSummary", "A tensor of a checkpoint.")
      .OCTET_MEMBERS(TensorSummary, name, dtype, shape, bytes, file);
  Record<DTypeSummary>(module, "DTypeSummary", "All tensors of a type.")
      .OCTET_MEMBERS(DTypeSummary, tensors, bytes);
  Record<CheckpointSummary>(module, "CheckpointSummary", "What is in a checkpoint.")
      .OCTET_MEMBERS(CheckpointSummary, path, files, metadata, tensors, total_bytes, parameters,
                     dtypes);
  Record<StoredLinear>(module, "StoredLinear", "A linear, and how it would run here.")
      .OCTET_MEMBERS(StoredLinear, name, layer, dialect, format, n, k, runs, file_bytes,
                     memory_bytes);
  Record<ModelPart>(module, "ModelPart", "A part of a model.")
      .OCTET_MEMBERS(ModelPart, part, path, dialect, linears, file_bytes, memory_bytes);
  Record<ModelSummary>(module, "ModelSummary", "The parts of a model.")
      .OCTET_MEMBERS(ModelSummary, parts, is_checkpoint, problem);
  module.def("inspect_model", &inspect_model, "path"_a, "base"_a, nb::call_guard<Unlocked>());
  module.def("inspect_checkpoint", &inspect_checkpoint, "path"_a, nb::call_guard<Unlocked>());
}

}  // namespace

void bind_files(nb::module_& module) {
  bind_quantize(module);
  bind_inspect(module);
  Record<DeviceInfo>(module, "DeviceInfo", "A device of this machine.")
      .OCTET_MEMBERS(DeviceInfo, name, description, int8_kernel, features, unavailable);
  module.def("devices", &list_devices, nb::call_guard<Unlocked>());
}

}  // namespace octet::python
