#include "measure/linear_case.h"

#include <cmath>
#include <fstream>
#include <optional>
#include <string>

#include "base/error.h"

namespace octet::measure {
namespace {

// Element `index` of a random tensor without state, so that the exact product can be computed from
// any element without keeping a second copy. Roughly normal: the sum of four uniform 16-bit words
// of a hashed counter (splitmix64), scaled to a standard deviation of 1.
float random_value(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0x9e3779b97f4a7c15ull + (index + 1) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  const auto sum =
      static_cast<float>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
  constexpr float kMean = 2 * 65535.0f;
  constexpr float kDeviation = 37837.0f;  // sqrt(4 / 12) * 65535
  return (sum - kMean) / kDeviation;
}

constexpr uint64_t kActivationSeed = 1;
constexpr uint64_t kWeightSeed = 2;

// Activations have a few channels that are much larger than the rest, as those of a transformer do.
float activation(int64_t row, int64_t column, int64_t k) {
  const float value = random_value(kActivationSeed, static_cast<uint64_t>(row * k + column));
  return column % 192 == 7 ? 8.0f * value : value;
}

float weight(int64_t row, int64_t column, int64_t k) {
  return 0.02f * random_value(kWeightSeed, static_cast<uint64_t>(row * k + column));
}

float rounded_to(DType dtype, float value) {
  return dtype == DType::bf16 ? to_f32(from_f32<bf16_t>(value)) : value;
}

Buffer random_matrix(Backend& backend, DType dtype, int64_t rows, int64_t k,
                     float (*value)(int64_t, int64_t, int64_t)) {
  Buffer host = allocate_host(bytes_of(dtype, {rows, k}));
  const TensorView view = host.view(dtype, {rows, k});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const float x = value(i, j, k);
      if (dtype == DType::bf16) {
        view.row<bf16_t>(i)[j] = from_f32<bf16_t>(x);
      } else {
        view.row<float>(i)[j] = x;
      }
    }
  }
  Buffer device = backend.allocate(host.bytes());
  backend.copy_to_device(device.data(), host.data(), host.bytes());
  return device;
}

Buffer to_host(Backend& backend, const Buffer& device) {
  Buffer host = allocate_host(device.bytes());
  backend.copy_to_host(host.data(), device.data(), device.bytes());
  return host;
}

// Memory that can be taken without swapping, or nothing when Linux does not say.
std::optional<double> available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kilobytes = 0;
  for (std::string unit; file >> key >> kilobytes; std::getline(file, unit)) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return std::nullopt;
}

// Linux hands out memory that it does not have and kills whoever touches it: count first.
void check_memory(const GemmShape& shape, DType dtype) {
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const double element = bits_of(dtype) / 8;
  // Operands as they are made, as they are kept and dequantized; int8 as rows and packed.
  const double needed = (m * k + n * k) * (3 * element + 3) + m * n * element;
  const auto available = available_bytes();
  check(!available || needed <= *available,
        "bench: m={} n={} k={} needs about {:.1f} GB of memory, and {:.1f} GB are free; use a "
        "smaller shape",
        shape.m, shape.n, shape.k, needed * 1e-9, available.value_or(0) * 1e-9);
}

}  // namespace

LinearCase::LinearCase(Backend& backend, const GemmShape& shape, DType dtype, bool compare)
    : backend_(backend), shape_(shape), dtype_(dtype) {
  check_memory(shape, dtype);
  const auto [m, n, k] = shape;
  activations_ = random_matrix(backend, dtype, m, k, activation);
  weight_ = random_matrix(backend, dtype, n, k, weight);
  q_activations_ = backend.allocate(bytes_of(DType::i8, {m, k}));
  row_scale_ = backend.allocate(bytes_of(DType::f32, {m}));
  q_weight_ = backend.allocate(bytes_of(DType::i8, {n, k}));
  col_scale_ = backend.allocate(bytes_of(DType::f32, {n}));
  output_ = backend.allocate(bytes_of(dtype, {m, n}));
  backend.quantize_rows(weight_.view(dtype, {n, k}), {}, quantized_weight());

  const Buffer host_values = to_host(backend, q_weight_);
  const Buffer host_scales = to_host(backend, col_scale_);
  packed_ = backend.pack({host_values.view(DType::i8, {n, k}), host_scales.view(DType::f32, {n})},
                         {}, {});
  if (compare) {
    dequantized_activations_ = backend.allocate(bytes_of(dtype, {m, k}));
    dequantized_weight_ = backend.allocate(bytes_of(dtype, {n, k}));
  } else {
    weight_ = {};
    q_weight_ = {};
    col_scale_ = {};
  }
}

QTensor LinearCase::quantized_activations() const {
  return {q_activations_.view(DType::i8, {shape_.m, shape_.k}),
          row_scale_.view(DType::f32, {shape_.m})};
}

QTensor LinearCase::quantized_weight() const {
  return {q_weight_.view(DType::i8, {shape_.n, shape_.k}), col_scale_.view(DType::f32, {shape_.n})};
}

void LinearCase::quantize() { backend_.quantize_rows(activations(), {}, quantized_activations()); }

void LinearCase::gemm() {
  backend_.gemm({quantized_activations(), &packed_, output()}, Fusion::none);
}

void LinearCase::fake() {
  const TensorView a = dequantized_activations_.view(dtype_, {shape_.m, shape_.k});
  const TensorView w = dequantized_weight_.view(dtype_, {shape_.n, shape_.k});
  quantize();
  backend_.dequantize_rows(quantized_activations(), a);
  backend_.dequantize_rows(quantized_weight(), w);
  backend_.matmul(a, w, output());
}

void LinearCase::unquantized() {
  backend_.matmul(activations(), weight_.view(dtype_, {shape_.n, shape_.k}), output());
}

double LinearCase::relative_error(int samples) const {
  const Buffer host = to_host(backend_, output_);
  const TensorView out = host.view(dtype_, {shape_.m, shape_.n});
  double error = 0;
  double norm = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    // Steps by primes visit rows and columns evenly.
    const int64_t i = sample * 7919 % shape_.m;
    const int64_t j = sample * 104729 % shape_.n;
    double exact = 0;
    for (int64_t p = 0; p < shape_.k; ++p) {
      exact += static_cast<double>(rounded_to(dtype_, activation(i, p, shape_.k))) *
               static_cast<double>(rounded_to(dtype_, weight(j, p, shape_.k)));
    }
    const double got = dtype_ == DType::bf16 ? to_f32(out.row<bf16_t>(i)[j]) : out.row<float>(i)[j];
    error += (got - exact) * (got - exact);
    norm += exact * exact;
  }
  return std::sqrt(error / norm);
}

}  // namespace octet::measure
