// Attention, the definition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {
namespace {

int8_t code(const ConstTensorView& codes, int64_t row, int64_t column) {
  return codes.as<int8_t>()[row * codes.row_stride() + column];
}

// Over the keys that a row sees.
std::vector<double> scores_of_row(const AttentionArgs& args, int64_t head, int64_t i) {
  const int64_t head_dim = args.head_dim(), sharing = args.heads / args.kv_heads;
  const int64_t at = head * head_dim, kv_at = head / sharing * head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  std::vector<double> scores(static_cast<size_t>(args.causal ? i + 1 : args.keys()));
  for (size_t seen = 0; seen < scores.size(); ++seen) {
    const auto key = static_cast<int64_t>(seen);
    double dot = 0;
    if (args.is_int8()) {
      int64_t sum = 0;
      for (int64_t j = 0; j < head_dim; ++j) {
        sum += int64_t{code(args.q, i, at + j)} * code(args.k, key, kv_at + j);
      }
      dot = static_cast<double>(sum) * load(args.q_scales, head, i) *
            load(args.k_scales, head / sharing, key);
    } else {
      for (int64_t j = 0; j < head_dim; ++j) {
        dot += static_cast<double>(load(args.q, i, at + j)) * load(args.k, key, kv_at + j);
      }
    }
    scores[seen] = dot * scale;
  }
  return scores;
}

// The largest value; NaNs are ignored.
double largest_of(const std::vector<double>& scores, size_t begin, size_t end) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = begin; i < end; ++i) largest = std::fmax(largest, scores[i]);
  return largest;
}

// The weights of all keys' values, before the division by their sum.
std::vector<double> weights_of(const std::vector<double>& scores, bool coded) {
  const double largest = largest_of(scores, 0, scores.size());
  const size_t width = coded ? static_cast<size_t>(QuantizedValues::kKeys) : scores.size();
  std::vector<double> weights;
  for (size_t begin = 0; begin < scores.size(); begin += width) {
    const size_t end = std::min(scores.size(), begin + width);
    const double here = largest_of(scores, begin, end);
    for (size_t key = begin; key < end; ++key) {
      const double weight = std::exp(scores[key] - here);
      weights.push_back(coded ? std::nearbyint(255 * weight) * std::exp(here - largest) : weight);
    }
  }
  return weights;
}

double value_at(const AttentionArgs& args, int64_t key, int64_t channel) {
  if (!args.has_int8_values()) return load(args.v, key, channel);
  constexpr int64_t kGroup = 16;
  int64_t column = key / kGroup * kGroup;
  while (QuantizedValues::key_at(column) != key) ++column;
  return (args.v.row<uint8_t>(channel)[column] - 128) *
         static_cast<double>(
             load(args.v_scales, channel / args.head_dim(), key / QuantizedValues::kKeys));
}

}  // namespace

void quantize_values(const ConstTensorView& v, int64_t heads, const QuantizedValues& out) {
  constexpr int64_t kKeys = QuantizedValues::kKeys;
  const int64_t head_dim = v.shape[1] / heads;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t block = 0; block < out.scales.shape[1]; ++block) {
      std::vector<float> values;  // in the order of the codes
      for (int64_t j = 0; j < head_dim; ++j) {
        for (int64_t column = 0; column < kKeys; ++column) {
          const int64_t key = block * kKeys + QuantizedValues::key_at(column);
          values.push_back(key < v.shape[0] ? load(v, key, head * head_dim + j) : 0.0f);
        }
      }
      std::vector<int8_t> codes(values.size());
      const auto count = static_cast<int64_t>(values.size());
      quantize_rows(ConstTensorView(reinterpret_cast<const std::byte*>(values.data()), DType::f32,
                                    {1, count}),
                    {},
                    {TensorView(reinterpret_cast<std::byte*>(codes.data()), DType::i8, {1, count}),
                     TensorView(reinterpret_cast<std::byte*>(out.scales.row<float>(head) + block),
                                DType::f32, {1})});
      for (int64_t i = 0; i < count; ++i) {
        out.codes.row<uint8_t>(head * head_dim + i / kKeys)[block * kKeys + i % kKeys] =
            static_cast<uint8_t>(codes[static_cast<size_t>(i)] + 128);
      }
    }
  }
}

void attention(const AttentionArgs& args) {
  const int64_t head_dim = args.head_dim(), sharing = args.heads / args.kv_heads;
  for (int64_t head = 0; head < args.heads; ++head) {
    const int64_t at = head * head_dim, kv_at = head / sharing * head_dim;
    for (int64_t i = 0; i < args.rows(); ++i) {
      const std::vector<double> weights =
          weights_of(scores_of_row(args, head, i), args.has_int8_values());
      double total = 0;
      for (const double weight : weights) total += weight;
      for (int64_t j = 0; j < head_dim; ++j) {
        double sum = 0;
        for (size_t key = 0; key < weights.size(); ++key) {
          sum += weights[key] * value_at(args, static_cast<int64_t>(key), kv_at + j);
        }
        store(args.out, i, at + j, static_cast<float>(sum / total));
      }
    }
  }
}

}  // namespace octet::ref
