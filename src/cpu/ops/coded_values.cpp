// Values in 8 bits, and attention where all operands are codes: sums are exact integers, weights
// are rounded as ops.h says. On a CPU it exists for comparisons.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

constexpr int64_t kCodedKeys = QuantizedValues::kKeys;

ThreadScratch value_scratch;       // a block of one head in f32
ThreadScratch value_work_scratch;  // and one for the row quantizer
ThreadScratch value_code_scratch;

// Scores of one row of one head, times log2(e), without the keys that it does not see.
std::vector<float> scores_of_codes(const AttentionArgs& args, int64_t head, int64_t row) {
  const int64_t head_dim = args.head_dim(), kv_head = head / (args.heads / args.kv_heads);
  const double scale = 0x1.71547652b82fep0 / std::sqrt(static_cast<double>(head_dim)) *
                       static_cast<double>(args.q_scales.row<float>(head)[row]);
  const int8_t* q = args.q.row<int8_t>(row) + head * head_dim;
  std::vector<float> scores(static_cast<size_t>(args.causal ? row + 1 : args.keys()));
  for (size_t key = 0; key < scores.size(); ++key) {
    const int8_t* k = args.k.row<int8_t>(static_cast<int64_t>(key)) + kv_head * head_dim;
    int32_t sum = 0;
    for (int64_t j = 0; j < head_dim; ++j) sum += q[j] * k[j];
    scores[key] = static_cast<float>(sum * scale *
                                     static_cast<double>(args.k_scales.row<float>(kv_head)[key]));
  }
  return scores;
}

// The weights of a block of keys as codes, in the order of the values' columns.
struct WeightCodes {
  uint8_t codes[kCodedKeys] = {};
  int32_t sum = 0;
  float largest = -std::numeric_limits<float>::infinity();  // score; NaN if any is

  WeightCodes(const float* scores, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (!(scores[i] <= largest)) largest = scores[i];
      if (std::isnan(largest)) return;
    }
    if (std::isinf(largest)) return;  // then neither weights nor their sum are numbers
    for (int64_t column = 0; column < kCodedKeys; ++column) {
      const int64_t key = QuantizedValues::key_at(column);
      if (key >= count) continue;
      const double weight = std::exp2(static_cast<double>(scores[key]) - largest);
      codes[column] = static_cast<uint8_t>(std::nearbyint(255 * weight));
      sum += codes[column];
    }
  }
};

void attend_coded(const AttentionArgs& args, int64_t head, int64_t row) {
  const int64_t head_dim = args.head_dim(), kv_head = head / (args.heads / args.kv_heads);
  const std::vector<float> scores = scores_of_codes(args, head, row);
  const auto visible = static_cast<int64_t>(scores.size());
  float largest = -std::numeric_limits<float>::infinity();
  for (const float score : scores) largest = std::fmax(largest, score);
  std::vector<double> sums(static_cast<size_t>(head_dim));
  double total = 0;
  for (int64_t first = 0; first < visible; first += kCodedKeys) {
    const WeightCodes weights(scores.data() + first, std::min(kCodedKeys, visible - first));
    const double unit = std::exp2(static_cast<double>(weights.largest) - largest);
    const double factor =
        unit * static_cast<double>(args.v_scales.row<float>(kv_head)[first / kCodedKeys]);
    total += unit * weights.sum;
    for (int64_t j = 0; j < head_dim; ++j) {
      const uint8_t* v = args.v.row<uint8_t>(kv_head * head_dim + j) + first;
      int32_t sum = -128 * weights.sum;
      for (int64_t column = 0; column < kCodedKeys; ++column) {
        sum += weights.codes[column] * v[column];
      }
      sums[static_cast<size_t>(j)] += factor * sum;
    }
  }
  for (int64_t j = 0; j < head_dim; ++j) {
    const auto value = static_cast<float>(sums[static_cast<size_t>(j)] / total);
    if (args.out.dtype == DType::bf16) {
      args.out.row<bf16_t>(row)[head * head_dim + j] = from_f32<bf16_t>(value);
    } else {
      args.out.row<float>(row)[head * head_dim + j] = value;
    }
  }
}

}  // namespace

void quantize_values(const Workers& workers, const ConstTensorView& v, int64_t heads,
                     const QuantizedValues& out) {
  const int64_t head_dim = v.shape[1] / heads, blocks = out.scales.shape[1];
  const int64_t count = head_dim * kCodedKeys;
  workers.pool.run(heads * blocks, [&](int64_t task, int) {
    const int64_t head = task / blocks, block = task % blocks, first = block * kCodedKeys;
    float* values = floats(value_scratch, count);  // [head_dim][kCodedKeys], as the codes
    for (int64_t column = 0; column < kCodedKeys; ++column) {
      const int64_t key = first + QuantizedValues::key_at(column);
      for (int64_t j = 0; j < head_dim; ++j) {
        const int64_t channel = head * head_dim + j;
        values[j * kCodedKeys + column] = key >= v.shape[0] ? 0.0f
                                          : v.dtype == DType::bf16
                                              ? to_f32(v.row<bf16_t>(key)[channel])
                                              : v.row<float>(key)[channel];
      }
    }
    auto* codes = reinterpret_cast<int8_t*>(value_code_scratch.at_least(count));
    workers.rows.quantize(values, DType::f32, count, {}, floats(value_work_scratch, count), codes,
                          out.scales.row<float>(head) + block);
    for (int64_t j = 0; j < head_dim; ++j) {
      uint8_t* row = out.codes.row<uint8_t>(head * head_dim + j) + first;
      for (int64_t column = 0; column < kCodedKeys; ++column) {
        row[column] = static_cast<uint8_t>(codes[j * kCodedKeys + column] + 128);
      }
    }
  });
}

void attention_with_coded_values(const Workers& workers, const AttentionArgs& args) {
  for_each_row(workers.pool, args.rows() * args.heads, args.keys() * args.head_dim(),
               [&](int64_t i) { attend_coded(args, i / args.rows(), i % args.rows()); });
}

}  // namespace octet::cpu
