// Which path a device should use for the linears of a model, measured on it: native INT8, bf16,
// FP8, NF4 and fake INT8, from single products to whole pictures. (`way` is the name of such a
// path.)
//
//   octet::DeploymentMap map = octet::map_device({.device = "cuda"});
//   for (const octet::MapRow& row : map.rows) std::cout << row.fastest << "\n";
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/tools/bench_step.h"
#include "octet/tools/gemm_shape.h"
#include "octet/tools/heat_map.h"

namespace octet {

struct MapRequest {
  // In the notation of parse_shapes(); sizes of a family ("ideogram4@768,1024") also give steps and
  // memory. Empty: ideogram4@768,1024,2048 on a GPU; elsewhere linears of that model with as many
  // tokens as a caption.
  std::string shapes;
  // Of the conditional pass of a step. `with_text`: the linears are also measured with image and
  // text tokens together.
  int64_t text_tokens = 512;
  bool with_text = false;
  std::string device = "auto";  // auto, ref, cpu, cuda[:i]
  int threads = 0;              // 0: one per physical core
  double seconds = 0.2;         // without pause, per path of a linear; 0: one run, one step
  Tuning tuning = Tuning::missing;
  // Of the networks whose steps are measured: the time per layer is the difference to a network of
  // one layer, and is multiplied by the model's number of layers. 0: no steps; none: 5 on a GPU,
  // else 0.
  std::optional<int64_t> layers;
};

// One path of one linear, including the quantization of its activations.
struct MapCell {
  std::string way;     // int8, bf16, fp8, nf4, fake
  double cold_us = 0;  // median of single runs, caches flushed if the device can
  double load_us = 0;  // per run, without pause: what counts in a model
  double error = 0;    // relative, of its outputs
  double ratio = 0;    // speed relative to bf16, under load
};

struct MapRow {
  GemmShape shape;
  std::string layer;        // "attention.qkv"; empty for a shape given as numbers
  int pixels = 0;           // side of the image; 0 for a shape given as numbers
  int64_t text_tokens = 0;  // among its rows
  std::string kernel;       // of int8
  std::string plan;         // source of that choice, see TuneRow
  std::vector<MapCell> cells;
  std::string fastest;  // way
  std::string path;     // the faster of int8 and bf16: what Linears::automatic uses if stored

  OCTET_API const MapCell* cell(const std::string& way) const;  // null: not on this device
};

// One denoising step of all networks.
struct MapStep {
  int pixels = 0;
  std::string way;        // of the large linears
  std::string attention;  // bf16, int8 (scores), int8-full
  double ms = 0;
  // True: extrapolated to the model's layers from a measured step of `layers` layers. False:
  // computed from the measured bf16 step, its linears replaced with those of the rows.
  bool measured = false;
  double computed_ms = 0;  // for a measured one: what such a computation would give; or 0
  // For a measured one: its linears (with their quantization, unless it is fused into a norm),
  // attention, and everything else.
  double linears_ms = 0, attention_ms = 0, rest_ms = 0;

  double seconds(int steps) const { return ms * 1e-3 * steps; }  // of a picture
};

// Device memory that a path needs while denoising.
struct MapMemory {
  std::string way;
  bool alone = false;  // only the first network, as without guidance
  int pixels = 0;
  uint64_t weight_bytes = 0;
  uint64_t work_bytes = 0;  // activations, and a dequantized weight
  bool measured = false;    // whether the activations were measured or estimated
  std::vector<int> fits;    // of kMapCards
};
// Sizes of cards, 10^9 bytes, of which kMapReserve is left for the CUDA context and a desktop.
inline constexpr int kMapCards[] = {8, 12, 16, 24, 32, 48, 80};
inline constexpr double kMapReserve = 0.6e9;
inline constexpr int kMapPictureSteps[] = {12, 20, 48};

struct MapWay {
  std::string name;
  std::string how;  // in words
};

struct DeploymentMap {
  std::string device;
  std::string date;    // UTC, ISO 8601
  std::string commit;  // of the build
  int threads = 0;
  std::string plan_file;  // where the decisions are stored; empty if they are not
  int kept_rows = 0;      // stored there: those whose kernels were measured
  int64_t text_tokens = 0;
  int64_t layers = 0;        // of the model; 0 without a family
  int64_t timed_layers = 0;  // of the timed networks; 0 without steps
  std::vector<MapWay> ways;  // the paths this device has
  std::vector<MapRow> rows;
  std::vector<MapStep> steps;
  std::vector<MapMemory> memory;
};

// Decisions go into the device's plan file, next to the kernels that were measured, where
// Linears::automatic finds them.
OCTET_API DeploymentMap map_device(const MapRequest& request, const StepProgress& progress = {});

// Linears by size and path; colours are speeds relative to bf16.
OCTET_API HeatMap heat_map_of(const DeploymentMap& map);
// A self-contained HTML page without scripts.
OCTET_API std::string map_page(const DeploymentMap& map);

}  // namespace octet
