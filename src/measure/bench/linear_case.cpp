#include "measure/bench/linear_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/host_backend.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/log.h"
#include "base/random_value.h"

namespace octet::measure {
namespace {

constexpr uint64_t kActivationSeed = 1;
constexpr uint64_t kWeightSeed = 2;

template <class T>
void fill_row(T* to, int64_t row, int64_t k, ElementAt element) {
  for (int64_t j = 0; j < k; ++j) to[j] = from_f32<T>(element(row, j, k));
}

float rounded_to(DType dtype, float value) {
  return dtype == DType::bf16 ? to_f32(from_f32<bf16_t>(value)) : value;
}

Buffer to_host(Backend& backend, const Buffer& device) {
  Buffer host = allocate_host(device.bytes());
  backend.copy_to_host(host.data(), device.data(), device.bytes());
  return host;
}

// The most that the host holds at any time while a LinearCase is made; running it takes no more.
void check_memory(const Backend& backend, const GemmShape& shape, DType dtype,
                  const OtherWays& ways) {
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const double element = bits_of(dtype) / 8;
  const double activations = m * k * element;
  const double weight = n * k * element;
  double needed = std::max(activations, weight);  // one after the other, on their way to a GPU
  if (keeps_data_on_host(backend)) {
    const double making = std::max(2 * activations, activations + 2 * weight);
    const double kept = activations + weight + (m * k + n * k) + m * n * element;
    const double packing = kept + 2 * n * k;  // the rows to be packed, and packed
    const double faking = ways.fake ? kept + n * k + activations + weight : 0;
    needed = std::max({making, packing, faking});
  }
  check_free_memory(fmt::format("bench: m={} n={} k={}", shape.m, shape.n, shape.k), needed);
}

// A step that visits each of `size` places before any of them again, as it shares no factor with
// their number, and spreads the first few evenly when `share` is far from simple fractions.
int64_t even_step(int64_t size, double share) {
  auto step = std::max<int64_t>(1, std::llround(static_cast<double>(size) * share));
  while (std::gcd(step, size) != 1) ++step;
  return step;
}

}  // namespace

float activation(int64_t row, int64_t column, int64_t k) {
  const float value = random_value(kActivationSeed, static_cast<uint64_t>(row * k + column));
  return column % 192 == 7 ? 8.0f * value : value;
}

float weight(int64_t row, int64_t column, int64_t k) {
  return 0.02f * random_value(kWeightSeed, static_cast<uint64_t>(row * k + column));
}

Buffer random_matrix(Backend& backend, DType dtype, int64_t rows, int64_t k, ElementAt element) {
  constexpr int64_t kElementsPerTask = 32 * 1024;  // enough to outweigh taking a task
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(k, 1));
  Buffer host = allocate_host(bytes_of(dtype, {rows, k}));
  const TensorView view = host.view(dtype, {rows, k});
  backend.pool().run(ceil_div(rows, rows_per_task), [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < end; ++row) {
      if (dtype == DType::bf16) {
        fill_row(view.row<bf16_t>(row), row, k, element);
      } else {
        fill_row(view.row<float>(row), row, k, element);
      }
    }
  });
  Buffer device = backend.allocate(host.bytes());
  backend.copy_to_device(device.data(), host.data(), host.bytes());
  return device;
}

LinearCase::LinearCase(Backend& backend, const GemmShape& shape, DType dtype, const OtherWays& ways)
    : backend_(backend), shape_(shape), dtype_(dtype) {
  check_memory(backend, shape, dtype, ways);
  const int64_t m = shape.m, n = shape.n, k = shape.k;
  activations_ = random_matrix(backend, dtype, m, k, activation);
  weight_ = random_matrix(backend, dtype, n, k, weight);
  q_activations_ = backend.allocate(bytes_of(DType::i8, {m, k}));
  row_scale_ = backend.allocate(bytes_of(DType::f32, {m}));
  q_weight_ = backend.allocate(bytes_of(DType::i8, {n, k}));
  col_scale_ = backend.allocate(bytes_of(DType::f32, {n}));
  output_ = backend.allocate(bytes_of(dtype, {m, n}));
  backend.quantize_rows(weight_.view(dtype, {n, k}), {}, quantized_weight());
  quantize();

  {  // The host's copies go before more is taken.
    const Buffer values = to_host(backend, q_weight_);
    const Buffer scales = to_host(backend, col_scale_);
    packed_ = backend.pack({values.view(DType::i8, {n, k}), scales.view(DType::f32, {n})}, {}, {});
  }
  if (ways.fake) {
    dequantized_activations_ = backend.allocate(bytes_of(dtype, {m, k}));
    dequantized_weight_ = backend.allocate(bytes_of(dtype, {n, k}));
  }
  if (!ways.fake && !ways.unquantized) weight_ = {};
  if (!ways.fake && !ways.peers) {
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

void LinearCase::peer(const GemmPeer& peer) {
  peer.run(quantized_activations(), quantized_weight(), output());
}

std::vector<LinearPeer> LinearCase::linear_peers() {
  return backend_.tuning().linear_peers(weight_.view(dtype_, {shape_.n, shape_.k}), shape_.m);
}

std::pair<int64_t, int64_t> LinearCase::sampled_place(int64_t sample) const {
  // The two shares of the R2 sequence, which fill a square evenly: with one share for both, the
  // samples of a square matrix would all lie on its diagonal.
  constexpr double kRows = 0.7548776662466927;
  constexpr double kColumns = 0.5698402909980532;
  return {sample * even_step(shape_.m, kRows) % shape_.m,
          sample * even_step(shape_.n, kColumns) % shape_.n};
}

std::vector<double> LinearCase::sampled_output(int samples) const {
  const TensorView out = output();
  const auto element_bytes = static_cast<size_t>(bits_of(dtype_) / 8);
  backend_.synchronize();
  std::vector<double> values;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const auto [i, j] = sampled_place(sample);
    const auto offset = static_cast<size_t>(i * shape_.n + j) * element_bytes;
    float wide = 0;
    bf16_t narrow{};
    std::byte* to = dtype_ == DType::bf16 ? reinterpret_cast<std::byte*>(&narrow)
                                          : reinterpret_cast<std::byte*>(&wide);
    backend_.copy_to_host(to, out.data + offset, element_bytes);
    values.push_back(dtype_ == DType::bf16 ? to_f32(narrow) : wide);
  }
  return values;
}

void LinearCase::poison_output(int samples) {
  const auto element_bytes = static_cast<size_t>(bits_of(dtype_) / 8);
  constexpr uint32_t kNan = 0xffff'ffff;  // its first bytes are one in bf16 as well
  for (int64_t sample = 0; sample < samples; ++sample) {
    const auto [i, j] = sampled_place(sample);
    const auto offset = static_cast<size_t>(i * shape_.n + j) * element_bytes;
    backend_.copy_to_device(output_.data() + offset, reinterpret_cast<const std::byte*>(&kNan),
                            element_bytes);
  }
}

double LinearCase::relative_error(int samples) const {
  const std::vector<double> got = sampled_output(samples);
  double error = 0;
  double norm = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const auto [i, j] = sampled_place(sample);
    double exact = 0;
    for (int64_t p = 0; p < shape_.k; ++p) {
      exact += static_cast<double>(rounded_to(dtype_, activation(i, p, shape_.k))) *
               static_cast<double>(rounded_to(dtype_, weight(j, p, shape_.k)));
    }
    const double off = got[static_cast<size_t>(sample)] - exact;
    error += off * off;
    norm += exact * exact;
  }
  return std::sqrt(error / norm);
}

double LinearCase::relative_error(const std::function<void()>& way, int samples) {
  poison_output(samples);
  way();
  return relative_error(samples);
}

bool LinearCase::try_peer(const GemmPeer& other) {
  constexpr int kSamples = 256;
  constexpr double kMost = 0.01;  // both round the same sums to the output type, two steps at most
  gemm();
  const std::vector<double> ours = sampled_output(kSamples);
  poison_output(kSamples);
  try {
    peer(other);
  } catch (const Error& error) {
    log::warning("bench: the peer {} is left out: {}", other.name, error.sentence());
    return false;
  }
  const std::vector<double> theirs = sampled_output(kSamples);
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    error += (theirs[i] - ours[i]) * (theirs[i] - ours[i]);
    norm += ours[i] * ours[i];
  }
  // Written so that a NaN, an output that was never written, is refused as well.
  const bool fits = error <= kMost * kMost * norm;
  check(fits,
        "bench: the peer {} is off by {:.3g} of the result for m={} n={} k={}, expected at most "
        "{}; leave `peers` out",
        other.name, std::sqrt(error / norm), shape_.m, shape_.n, shape_.k, kMost);
  return true;
}

}  // namespace octet::measure
