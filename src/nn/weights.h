// Weights as a model holds them, and the one list of them that a model gives.
//
// A model lists its weights once, by calling a WeightVisitor for each. Whoever needs to know them
// is a visitor: the loader, the check against a checkpoint, the count, the maker of random models.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/quantized.h"

namespace octet::nn {

// Rows of a linear's W [n, k], in INT8 or in the type of the activations.
struct LinearPart {
  int64_t n = 0, k = 0;
  std::optional<QWeight> quantized;
  Buffer weight;              // [n, k], when it is not quantized
  DType dtype = DType::bf16;  // of weight and bias
  Buffer bias;                // [n], or empty; a quantized weight has its own
  // Fake INT8: `weight` has the values of INT8 codes, and activations are quantized under this
  // transform and dequantized before they meet it.
  struct Rounding {
    ActivationTransform transform;
    Buffer smooth;  // F32 [k], or empty
  };
  std::optional<Rounding> rounding;

  bool is_int8() const { return quantized.has_value(); }
  ConstTensorView weight_view() const { return weight.view(dtype, {n, k}); }
  ConstTensorView bias_view() const {
    return bias ? ConstTensorView(bias.view(dtype, {n})) : ConstTensorView();
  }
};

// Why a linear runs as it does.
enum class Precision : uint8_t {
  int8,
  protected_,  // large, and in floating point by the choice of its checkpoint
  kept,        // small: the model keeps it in floating point
  floating,    // large, and requested in floating point
  fake,        // large, and requested in fake INT8
};

// out = x W^T + bias. W is one part, unless a checkpoint has rows that cannot be joined: some in
// INT8 and some not, or with different transforms of their activations. Each part then gives its
// columns of the output.
struct Linear {
  std::string layer;  // its class, for reports: "attention.qkv"
  std::string name;   // its own: "layers.3.attention.qkv"
  int64_t n = 0, k = 0;
  Precision precision = Precision::kept;
  std::vector<LinearPart> parts;

  bool is_int8() const {
    return std::ranges::all_of(parts, [](const auto& part) { return part.is_int8(); });
  }
};

// A norm's weight or bias, or a table of frequencies: F32 [length].
struct Vector {
  Buffer memory;
  int64_t length = 0;

  ConstTensorView view() const { return memory.view(DType::f32, {length}); }
};

// Rows of an embedding, in the type of the activations.
struct Table {
  Buffer memory;
  // Its rows stay in the files, and whoever runs reads those that it needs: no memory is made for
  // it. The part says so each time that it lists its weights.
  bool in_files = false;
  DType dtype = DType::bf16;
  int64_t rows = 0, columns = 0;

  ConstTensorView view() const { return memory.view(dtype, {rows, columns}); }
};

// A convolution's weight, its taps before its channels: [out, kernel * kernel * in].
struct Conv {
  std::string layer;
  LinearPart matrix;
  int64_t kernel = 0;
};

// One linear as checkpoints may store it.
struct LinearSpec {
  struct Part {
    std::string name;  // of the module: the tensor is <name>.weight
    int64_t rows = 0;
  };

  std::string layer;
  int64_t k = 0;
  bool bias = false;
  // Ways to store it, of which a checkpoint has one: modules whose rows follow one another.
  std::vector<std::vector<Part>> layouts;
  RowOrder order = RowOrder::plain;
  bool large = false;  // runs in INT8 unless the layer is kept in floating point

  const std::string& name() const { return layouts.front().front().name; }
  int64_t n() const {
    int64_t rows = 0;
    for (const Part& part : layouts.front()) rows += part.rows;
    return rows;
  }
};

struct ConvSpec {
  std::string name;
  int64_t out = 0, in = 0, kernel = 0;
};

class WeightVisitor {
 public:
  virtual ~WeightVisitor() = default;
  virtual void linear(Linear& into, const LinearSpec& spec) = 0;
  virtual void conv(Conv& into, const ConvSpec& spec) = 0;  // <name>.weight and <name>.bias
  virtual void vector(Vector& into, const std::string& name, int64_t length) = 0;
  virtual void table(Table& into, const std::string& name, int64_t rows, int64_t columns) = 0;
};

}  // namespace octet::nn
