// Ops on the heads of rows, the definitions. Inner values are f64, as in rows.cpp.
#include <cmath>
#include <vector>

#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {
namespace {

// A head of row i after its norm and rotation, in f32.
std::vector<float> rotated_head(const ConstTensorView& x, int64_t i, int64_t index,
                                const HeadRotation& how) {
  const int64_t head_dim = x.shape[1] / how.heads, half = head_dim / 2, first = index * head_dim;
  const bool second = index >= how.heads - how.second_heads;
  const auto* weight = (second ? how.second_weight : how.weight).as<float>();
  double squares = 0;
  for (int64_t j = 0; j < head_dim; ++j) {
    const double value = load(x, i, first + j);
    squares += value * value;
  }
  const double factor = 1 / std::sqrt(squares / static_cast<double>(head_dim) + how.eps);
  std::vector<double> normed;
  for (int64_t j = 0; j < head_dim; ++j)
    normed.push_back(load(x, i, first + j) * factor * weight[j]);
  std::vector<float> rotated(static_cast<size_t>(head_dim));
  for (int64_t j = 0; j < half; ++j) {
    const double low = normed[static_cast<size_t>(j)], high = normed[static_cast<size_t>(j + half)];
    const double c = how.cos.row<float>(i)[j], s = how.sin.row<float>(i)[j];
    rotated[static_cast<size_t>(j)] = static_cast<float>(low * c - high * s);
    rotated[static_cast<size_t>(j + half)] = static_cast<float>(high * c + low * s);
  }
  return rotated;
}

}  // namespace

void rotate_heads(const TensorView& x, const HeadRotation& how) {
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    int64_t channel = 0;
    for (int64_t index = 0; index < how.heads; ++index) {
      for (const float value : rotated_head(x, i, index, how)) store(x, i, channel++, value);
    }
  }
}

void rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                           const ConstTensorView& mean, const QuantizedHeads& out) {
  const int64_t head_dim = x.shape[1] / how.heads;
  const int64_t without_mean = x.shape[1] - (mean.data == nullptr ? 0 : mean.shape[0]);
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    for (int64_t index = 0; index < how.heads; ++index) {
      const int64_t first = index * head_dim;
      std::vector<float> head = rotated_head(x, i, index, how);
      for (int64_t j = 0; j < head_dim && first >= without_mean; ++j) {
        head[static_cast<size_t>(j)] -= mean.as<float>()[first - without_mean + j];
      }
      float scale = 0;
      const ConstTensorView row(reinterpret_cast<const std::byte*>(head.data()), DType::f32,
                                {1, head_dim});
      const TensorView codes(out.codes.data + i * out.codes.row_stride() + first, DType::i8,
                             {1, head_dim});
      quantize_rows(row, {},
                    {codes, TensorView(reinterpret_cast<std::byte*>(&scale), DType::f32, {1})});
      out.scales.row<float>(index)[i] = scale * out.scale_factor;
    }
  }
}

void rotated_head_mean(const ConstTensorView& x, const HeadRotation& how, const TensorView& mean) {
  std::vector<double> sums(static_cast<size_t>(x.shape[1]));
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    size_t channel = 0;
    for (int64_t index = 0; index < how.heads; ++index) {
      for (const float value : rotated_head(x, i, index, how)) sums[channel++] += value;
    }
  }
  for (size_t j = 0; j < sums.size(); ++j) {
    mean.as<float>()[j] = static_cast<float>(sums[j] / static_cast<double>(x.shape[0]));
  }
}

}  // namespace octet::ref
