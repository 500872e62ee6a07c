// Which way a device should run the linears of a model, measured on it: native INT8, bf16, FP8, NF4
// and fake INT8, from single products up to a picture.
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
  // As parse_shapes() reads them; sizes of a family ("ideogram4@768,1024") also give steps and
  // memory. Empty: ideogram4@768,1024,2048 on a GPU, linears of that model with the tokens of a
  // caption elsewhere.
  std::string shapes;
  // Of the conditional pass of a step. `with_text`: the linears are also measured with the tokens
  // of an image and these.
  int64_t text_tokens = 512;
  bool with_text = false;
  std::string device = "auto";  // auto, ref, cpu, cuda[:i]
  int threads = 0;              // 0: one per physical core
  double seconds = 0.2;         // of each way of a linear without pause; 0: one run, and one step
  Tuning tuning = Tuning::missing;
  // Of the networks of which steps are measured: what a layer takes is the difference to a network
  // of one, and multiplied by the number of the model's. 0: no steps; none: 5 on a GPU, else 0.
  std::optional<int64_t> layers;
};

// One way of one linear, quantization of its activations included.
struct MapCell {
  std::string way;     // int8, bf16, fp8, nf4, fake
  double cold_us = 0;  // median of single runs, caches emptied where a device can
  double load_us = 0;  // per run, of runs without pause: what counts in a model
  double error = 0;    // relative, of its outputs
  double ratio = 0;    // how many times as fast as bf16 it is under load
};

struct MapRow {
  GemmShape shape;
  std::string layer;        // "attention.qkv"; empty for a shape that was given as numbers
  int pixels = 0;           // of the image's side; 0 likewise
  int64_t text_tokens = 0;  // among its rows
  std::string kernel;       // of int8
  std::string plan;         // source of that choice, as in TuneRow
  std::vector<MapCell> cells;
  std::string fastest;  // way
  std::string path;     // int8 or bf16, the faster one: what Linears::automatic takes if kept

  OCTET_API const MapCell* cell(const std::string& way) const;  // null: this device has no such way
};

// One denoising step of all networks.
struct MapStep {
  int pixels = 0;
  std::string way;        // of the large linears
  std::string attention;  // bf16, int8 (scores), int8-full
  double ms = 0;
  // True: a step of `layers` layers ran like this, and its layers were counted up to the model's.
  // False: computed from the measured bf16 step, its linears replaced with those of the rows.
  bool measured = false;
  double computed_ms = 0;  // of a measured one: what such a computation would have given; or 0
  // Of a measured one: its linears (with their quantization where it is no part of a norm),
  // attention, and everything else.
  double linears_ms = 0, attention_ms = 0, rest_ms = 0;

  double seconds(int steps) const { return ms * 1e-3 * steps; }  // of a picture
};

// What a way takes of a device's memory while it denoises.
struct MapMemory {
  std::string way;
  bool alone = false;  // of the first network alone, which makes pictures without guidance
  int pixels = 0;
  uint64_t weight_bytes = 0;
  uint64_t work_bytes = 0;  // activations, and the weight that a way dequantizes
  bool measured = false;    // the activations; else their estimate
  std::vector<int> fits;    // of kMapCards
};
// Sizes of cards, 10^9 bytes, of which a context and a desktop take kMapReserve.
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
  std::string plan_file;  // that has the decisions; empty when they are not kept
  int kept_rows = 0;      // in that file: those whose kernels were measured
  int64_t text_tokens = 0;
  int64_t layers = 0;        // of the model; 0 without a family
  int64_t timed_layers = 0;  // of the networks that were timed; 0 without steps
  std::vector<MapWay> ways;  // that this device has
  std::vector<MapRow> rows;
  std::vector<MapStep> steps;
  std::vector<MapMemory> memory;
};

// `progress` is told what is being done, and how much of it. Decisions go into the device's plan
// file, beside kernels that were measured, and Linears::automatic finds them there.
OCTET_API DeploymentMap map_device(const MapRequest& request, const StepProgress& progress = {});

// Linears by sizes and ways; colours are speeds relative to bf16.
OCTET_API HeatMap heat_map_of(const DeploymentMap& map);
// One HTML page without scripts and without other files.
OCTET_API std::string map_page(const DeploymentMap& map);

}  // namespace octet
