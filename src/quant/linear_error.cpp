#include "quant/linear_error.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/per_thread.h"
#include "quant/recipe.h"

namespace octet::quant {
namespace {

constexpr size_t kWorst = 3;

Buffer upload(Backend& backend, std::span<const std::byte> bytes) {
  Buffer buffer = backend.allocate(bytes.size());
  backend.copy_to_device(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

std::vector<bf16_t> narrowed(std::span<const float> values) {
  std::vector<bf16_t> narrow(values.size());
  for (size_t i = 0; i < values.size(); ++i) narrow[i] = from_f32<bf16_t>(values[i]);
  return narrow;
}

std::vector<ErrorPlace> largest(std::span<const double> values) {
  std::vector<ErrorPlace> places;
  for (size_t i = 0; i < values.size(); ++i) places.push_back({static_cast<int64_t>(i), values[i]});
  const size_t count = std::min(kWorst, places.size());
  std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count),
                    places.end(), [](const ErrorPlace& a, const ErrorPlace& b) {
                      return a.value > b.value || (a.value == b.value && a.index < b.index);
                    });
  places.resize(count);
  return places;
}

std::vector<ErrorPlace> worst_columns(std::span<const float> amax) {
  std::vector<float> sorted(amax.begin(), amax.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double median = *middle > 0 ? static_cast<double>(*middle) : 1;
  std::vector<double> reach;
  for (const float value : amax) reach.push_back(static_cast<double>(value) / median);
  return largest(reach);
}

// One way to quantize, with the activations already quantized for it.
struct Way {
  weights::StoredTransform activations, weights;
  Buffer values, scales, smooth;
  double squared_error = 0;
  std::vector<double> of_rows;  // squared errors by output channel
};

class Measurement {
 public:
  Measurement(Backend& backend, const WeightRows& rows, const LinearInputs& inputs,
              std::span<const float> smooth, const ErrorOptions& options)
      : backend_(backend),
        rows_(rows),
        inputs_(inputs),
        options_(options),
        x_(upload(backend, std::as_bytes(std::span(inputs.rows)))),
        x_bf16_(upload(backend, std::as_bytes(std::span<const bf16_t>(narrowed(inputs.rows))))) {
    const auto reciprocal = [&] {
      std::vector<float> inverse;
      for (const float factor : smooth) inverse.push_back(1 / factor);
      return inverse;
    };
    const int64_t group =
        group_for({.kind = Recipe::Kind::convrot, .group = options.recipe.group}, rows.k());
    make(rowwise_, {}, {});
    make(smoothquant_, {Transform::smooth, reciprocal(), 0},
         {Transform::smooth, {smooth.begin(), smooth.end()}, 0});
    const weights::StoredTransform rotation =
        group > 0 ? weights::StoredTransform{Transform::rotate, {}, group}
                  : weights::StoredTransform{};
    make(convrot_, rotation, rotation);
    unquantized_.of_rows.resize(static_cast<size_t>(rows.rows()));
  }

  LinearError run() {
    const int64_t at_once = options_.limit.rows(rows_);
    for (int64_t first = 0; first < rows_.rows(); first += at_once) {
      measure(first, std::min(at_once, rows_.rows() - first));
    }
    LinearError error{.n = rows_.rows(), .k = rows_.k()};
    const auto nrmse = [&](const Way& way) {
      return squares_ > 0 ? std::sqrt(way.squared_error / squares_) : 0.0;
    };
    error.rowwise = nrmse(rowwise_);
    error.smoothquant = nrmse(smoothquant_);
    error.convrot = nrmse(convrot_);
    error.unquantized = nrmse(unquantized_);
    Way& chosen = chosen_way();
    for (double& share : chosen.of_rows) {
      share = chosen.squared_error > 0 ? share / chosen.squared_error : 0;
    }
    error.worst_rows = largest(chosen.of_rows);
    error.worst_columns = worst_columns(inputs_.amax);
    return error;
  }

 private:
  void make(Way& way, weights::StoredTransform activations, weights::StoredTransform weights) {
    const int64_t count = inputs_.row_count(), k = rows_.k();
    way.activations = std::move(activations);
    way.weights = std::move(weights);
    way.of_rows.resize(static_cast<size_t>(rows_.rows()));
    way.values = backend_.allocate(static_cast<size_t>(count * k));
    way.scales = backend_.allocate(static_cast<size_t>(count) * sizeof(float));
    ActivationTransform transform = way.activations.view();
    if (transform.kind == Transform::smooth) {
      way.smooth = upload(backend_, std::as_bytes(std::span(way.activations.smooth)));
      transform.smooth = way.smooth.view(DType::f32, {k});
    }
    backend_.quantize_rows(x_.view(DType::f32, {count, k}), transform, quantized(way));
  }

  QTensor quantized(const Way& way) const {
    const int64_t count = inputs_.row_count();
    return {way.values.view(DType::i8, {count, rows_.k()}), way.scales.view(DType::f32, {count})};
  }

  Way& chosen_way() {
    switch (options_.recipe.kind) {
      case Recipe::Kind::smoothquant: return smoothquant_;
      case Recipe::Kind::convrot: return convrot_;
      default: return rowwise_;
    }
  }

  // Output channels [first, first + count).
  void measure(int64_t first, int64_t count) {
    const int64_t k = rows_.k(), samples = inputs_.row_count();
    std::vector<float> wide(static_cast<size_t>(count * k));
    backend_.pool().run(count, [&](int64_t row, int) {
      float* into = wide.data() + row * k;
      static PerThread<std::vector<std::byte>> stored_by_thread;
      std::vector<std::byte>& stored = stored_by_thread.get();
      stored.resize(static_cast<size_t>(k * (bits_of(rows_.dtype()) / 8)));
      rows_.read(first + row, stored.data());
      const float scale = rows_.scale(first + row);
      for (int64_t j = 0; j < k; ++j) {
        into[j] = weights::load_as_f32(rows_.dtype(), stored.data(), j) * scale;
      }
    });
    const Buffer weight = upload(backend_, std::as_bytes(std::span(wide)));
    const Buffer out = backend_.allocate(static_cast<size_t>(samples * count) * sizeof(float));
    const TensorView y = out.view(DType::f32, {samples, count});
    backend_.matmul(x_.view(DType::f32, {samples, k}), weight.view(DType::f32, {count, k}), y);
    const std::vector<float> exact = download(y);
    for (const float value : exact) squares_ += static_cast<double>(value) * value;
    {
      const auto narrow = narrowed(wide);
      const Buffer weight_bf16 = upload(backend_, std::as_bytes(std::span(narrow)));
      backend_.matmul(x_bf16_.view(DType::bf16, {samples, k}),
                      weight_bf16.view(DType::bf16, {count, k}), y);
      compare(unquantized_, first, exact, download(y));
    }
    for (Way* way : {&rowwise_, &smoothquant_, &convrot_}) {
      backend_.gemm({quantized(*way), pack(*way, weight, count), y}, Fusion::none);
      compare(*way, first, exact, download(y));
    }
  }

  const QWeight* pack(const Way& way, const Buffer& weight, int64_t count) {
    const int64_t k = rows_.k();
    const Buffer codes = backend_.allocate(static_cast<size_t>(count * k));
    const Buffer scales = backend_.allocate(static_cast<size_t>(count) * sizeof(float));
    ActivationTransform transform = way.weights.view();
    Buffer smooth;
    if (transform.kind == Transform::smooth) {
      smooth = upload(backend_, std::as_bytes(std::span(way.weights.smooth)));
      transform.smooth = smooth.view(DType::f32, {k});
    }
    backend_.quantize_rows_searched(
        weight.view(DType::f32, {count, k}), transform, clip_ratios(options_.clip),
        {codes.view(DType::i8, {count, k}), scales.view(DType::f32, {count})});
    const Buffer host = allocate_host(codes.bytes());
    const Buffer host_scales = allocate_host(scales.bytes());
    backend_.copy_to_host(host.data(), codes.data(), codes.bytes());
    backend_.copy_to_host(host_scales.data(), scales.data(), scales.bytes());
    packed_ =
        backend_.pack({host.view(DType::i8, {count, k}), host_scales.view(DType::f32, {count})}, {},
                      way.activations.view());
    return &packed_;
  }

  std::vector<float> download(const TensorView& y) {
    std::vector<float> values(static_cast<size_t>(y.shape[0] * y.shape[1]));
    backend_.copy_to_host(reinterpret_cast<std::byte*>(values.data()), y.data,
                          values.size() * sizeof(float));
    return values;
  }

  void compare(Way& way, int64_t first, std::span<const float> exact, std::span<const float> got) {
    const size_t count = exact.size() / static_cast<size_t>(inputs_.row_count());
    for (size_t i = 0; i < exact.size(); ++i) {
      const double error = static_cast<double>(got[i]) - static_cast<double>(exact[i]);
      way.squared_error += error * error;
      way.of_rows[static_cast<size_t>(first) + i % count] += error * error;
    }
  }

  Backend& backend_;
  const WeightRows& rows_;
  const LinearInputs& inputs_;
  const ErrorOptions& options_;
  Buffer x_, x_bf16_;  // [samples, k]
  Way rowwise_, smoothquant_, convrot_, unquantized_;
  QWeight packed_;
  double squares_ = 0;  // of all exact outputs
};

}  // namespace

LinearError measure_error(Backend& backend, const std::string& module, const WeightRows& rows,
                          const LinearInputs& inputs, std::span<const float> smooth,
                          const ErrorOptions& options) {
  check(inputs.k == rows.k() && static_cast<int64_t>(smooth.size()) == rows.k() &&
            inputs.row_count() > 0,
        "{}: {} rows of {} channels to measure it with, expected some of {}", module,
        inputs.row_count(), inputs.k, rows.k());
  LinearError error = Measurement(backend, rows, inputs, smooth, options).run();
  error.module = module;
  return error;
}

}  // namespace octet::quant
