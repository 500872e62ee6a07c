// Models without a checkpoint: every weight is a seeded random number, a function of its tensor's
// name and its place in it. The same seed gives the same model.
//
// Matrices have a deviation of 1 / sqrt(inputs), so that activations keep their size from layer to
// layer; the weights of norms lie near 1, biases near 0.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "formats/tensor_info.h"
#include "nn/weights.h"

namespace octet::weights {

// A tensor as a checkpoint stores it. Linears are listed under the last of their layouts, which is
// that of Hugging Face repositories.
struct RandomTensor {
  std::string name;
  FileShape shape;
  int64_t inputs = 0;  // summed up for one output; 0 for a vector, 1 for an embedding

  int64_t elements() const { return static_cast<int64_t>(elements_of(shape)); }
};

struct Spread {
  float mean = 0;
  float deviation = 1;
};
Spread default_spread(const RandomTensor& tensor);

// values[i] is the element first + i, as F32.
void fill_random(uint64_t seed, const RandomTensor& tensor, const Spread& spread, int64_t first,
                 std::span<float> values);

struct RandomOptions {
  uint64_t seed = 0;
  DType dtype = DType::bf16;  // of activations, and of weights that are not INT8
  bool int8 = true;           // large linears
  // Of these, those that are in floating point nevertheless; empty: none.
  std::function<bool(const nn::LinearSpec&)> floating = {};
  bool numbers = true;  // false: only the memory of weights, for a backend that only counts
  // Told the number of weights that were made since the last time; may throw to stop.
  std::function<void(int64_t)> progress;
};

// Makes a model in a backend's memory.
class RandomWeights : public nn::WeightVisitor {
 public:
  RandomWeights(Backend& backend, RandomOptions options)
      : backend_(backend), options_(std::move(options)) {}

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv& into, const nn::ConvSpec& spec) override;
  void vector(nn::Vector& into, const std::string& name, int64_t length) override;
  void table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) override;

 private:
  Buffer make(const std::vector<RandomTensor>& parts, DType dtype);
  QWeight make_int8(const nn::LinearSpec& spec);
  void made(int64_t weights);

  Backend& backend_;
  RandomOptions options_;
};

// What a model takes in a backend's memory; without a backend, what its numbers take alone.
class WeightCount : public nn::WeightVisitor {
 public:
  // `floating`: large linears that are not INT8 nevertheless.
  WeightCount(DType dtype, bool int8, const Backend* backend = nullptr,
              std::function<bool(const nn::LinearSpec&)> floating = {})
      : bytes_each_(bits_of(dtype) / 8),
        int8_(int8),
        backend_(backend),
        floating_(std::move(floating)) {}

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override;
  void conv(nn::Conv& into, const nn::ConvSpec& spec) override;
  void vector(nn::Vector& into, const std::string& name, int64_t length) override;
  void table(nn::Table& into, const std::string& name, int64_t rows, int64_t columns) override;

  int64_t parameters() const { return parameters_; }
  int64_t bytes() const { return bytes_; }

 private:
  void count(int64_t parameters, int64_t bytes_each);

  int64_t bytes_each_;
  bool int8_;
  const Backend* backend_;
  std::function<bool(const nn::LinearSpec&)> floating_;
  int64_t parameters_ = 0, bytes_ = 0;
};

}  // namespace octet::weights
