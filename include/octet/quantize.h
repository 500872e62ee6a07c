// Makes INT8 checkpoints from checkpoints in any dialect.
//
//   octet::QuantizeRequest request;
//   request.source = "ideogram-4-fp8";
//   request.out = "ideogram-4-int8";
//   request.recipe = octet::parse_recipe("convrot");
//   const octet::QuantizeReport report = octet::quantize(request, nullptr);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/picture.h"
#include "octet/words.h"

namespace octet {

// How the large linears of a model are quantized.
struct Recipe {
  enum class Kind : uint8_t {
    rowwise,      // weights as they are
    smoothquant,  // outlier channels of activations scaled down, those of weights up
    convrot,      // both rotated within groups of channels
  };
  Kind kind = Kind::rowwise;
  float alpha = 0.5f;   // for smoothquant: how much of the range moves to the weights
  int64_t group = 256;  // for convrot

  bool operator==(const Recipe&) const = default;
};
template <>
struct Words<Recipe::Kind> {
  static constexpr Word<Recipe::Kind> list[] = {{Recipe::Kind::rowwise, "rowwise"},
                                                {Recipe::Kind::smoothquant, "smoothquant"},
                                                {Recipe::Kind::convrot, "convrot"}};
};

// "rowwise", "smoothquant", "smoothquant:0.6", "convrot", "convrot:64"; throws InvalidRequest for
// anything else.
OCTET_API Recipe parse_recipe(const std::string& text);
OCTET_API std::string to_string(const Recipe& recipe);

// Which linears stay in floating point.
struct Protection {
  int64_t worst = 0;  // this many in each network, those with the largest error
  std::vector<std::string> patterns = {};  // names, with * for any text

  bool operator==(const Protection&) const = default;
};

// "none", "auto:17", or names separated by commas; throws InvalidRequest for anything else.
OCTET_API Protection parse_protection(const std::string& text);
OCTET_API std::string to_string(const Protection& protection);

// comfyui: one file per network. transformerlab: one file for all of them.
enum class OutputDialect : uint8_t { comfyui, transformerlab };
template <>
struct Words<OutputDialect> {
  static constexpr Word<OutputDialect> list[] = {{OutputDialect::comfyui, "comfyui"},
                                                 {OutputDialect::transformerlab, "transformerlab"}};
};

struct QuantizeRequest {
  // A model's folder in Hugging Face's layout (all of its networks are quantized), or one network:
  // its folder or file.
  std::string source = {};
  std::string base = {};  // supplies what `source` lacks
  // A folder if the source is a model's folder, else a .safetensors file. Empty: only measure
  // errors.
  std::string out = {};
  // Which network a single one is, if its file does not say: "unconditional". Empty: the first of
  // its family.
  std::string network = {};
  Recipe recipe = {.kind = Recipe::Kind::convrot};
  Protection protect = {};
  bool clip = true;  // search the scales of weights for the smallest error
  OutputDialect dialect = OutputDialect::comfyui;
  std::string statistics = {};  // file of activation statistics: read, or made by calibration
  std::vector<std::string> captions = {};  // files to calibrate with; none: no calibration
  bool any_caption = false;                // run them despite errors, with warnings
  int calibration_steps = 0;               // 0: as in the shortest preset
  PictureSize calibration_size = {};       // 0 x 0: as given in the model's folder, else 512 x 512
  uint64_t seed = 0;
  uint64_t max_memory = 0;  // bytes, 0: as much as is useful
  bool measure = false;     // measure the errors of all large linears
  bool verify = false;      // read the output back and compare it
  std::string device = "auto";
  int threads = 0;
};

// The file for calibration results: `statistics`, else next to `out`; empty if neither is set.
OCTET_API std::string statistics_path(const QuantizeRequest& request);

enum class QuantizeStage : uint8_t { calibrate, measure, write, verify };
template <>
struct Words<QuantizeStage> {
  static constexpr Word<QuantizeStage> list[] = {{QuantizeStage::calibrate, "calibrate"},
                                                 {QuantizeStage::measure, "measure"},
                                                 {QuantizeStage::write, "write"},
                                                 {QuantizeStage::verify, "verify"}};
};

struct QuantizeStep {
  QuantizeStage stage = QuantizeStage::measure;
  int64_t done = 0, total = 0;  // steps when calibrating, else bytes of the source
  std::string network = {};     // the current one, if they are processed one by one
};
using OnQuantizeStep = std::function<bool(const QuantizeStep&)>;  // false ends the work

struct ErrorPlace {
  int64_t index = 0;
  double value = 0;
};

// How far a linear's output in INT8 is from its output in F32. NRMSE: the root of the squared error
// of all outputs over their squares.
struct LinearError {
  std::string network = {}, module = {};
  int64_t n = 0, k = 0;
  double rowwise = 0, smoothquant = 0, convrot = 0;
  double unquantized = 0;  // in BF16: the error of a protected linear
  bool is_protected = false;
  std::vector<ErrorPlace> worst_rows = {};     // output channels: share of the squared error
  std::vector<ErrorPlace> worst_columns = {};  // input channels: range over the median channel's

  double of(Recipe::Kind kind) const {
    switch (kind) {
      case Recipe::Kind::smoothquant: return smoothquant;
      case Recipe::Kind::convrot: return convrot;
      default: return rowwise;
    }
  }
};

struct QuantizedNetwork {
  std::string network = {};                    // "conditional"
  int64_t int8 = 0, protected_ = 0, kept = 0;  // linears; `kept` are small ones
  std::vector<std::string> protected_modules = {};
};

struct QuantizeReport {
  std::string device = {};
  Recipe recipe = {};
  std::string activations = {};  // source of the rows that errors were measured on
  std::vector<std::string> files = {};
  std::vector<QuantizedNetwork> networks = {};
  std::vector<LinearError> errors = {};  // if measured, in the order of the model
  uint64_t source_bytes = 0, output_bytes = 0;
  uint64_t resumed_tensors = 0;  // finished by an earlier run
  bool verified = false;         // read back and compared
  double seconds = 0;            // of writing
  // Of the models that the request names, one that has what the output lacks: text encoder,
  // tokenizer, VAE. Empty: none has all of it.
  std::string base = {};
};

// Throws Error with one sentence. The next call with the same request resumes an unfinished output.
OCTET_API QuantizeReport quantize(const QuantizeRequest& request, const OnQuantizeStep& on_step);

// A linear's name in a list: prefixed with its network's, shortened, unless that is the first of
// the report.
OCTET_API std::string linear_title(const QuantizeReport& report, const LinearError& error);

// The errors as an HTML page: bars, sorted by the recipe's error.
OCTET_API std::string error_page(const QuantizeReport& report);

}  // namespace octet
