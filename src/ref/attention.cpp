// Attention, the definition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {
namespace {

int8_t code(const ConstTensorView& codes, int64_t row, int64_t column) {
  return codes.as<int8_t>()[row * codes.row_stride() + column];
}

}  // namespace

void attention(const AttentionArgs& args) {
  const int64_t head_dim = args.head_dim(), sharing = args.heads / args.kv_heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  std::vector<double> weights(static_cast<size_t>(args.keys()));
  for (int64_t head = 0; head < args.heads; ++head) {
    const int64_t at = head * head_dim, kv_at = head / sharing * head_dim;
    for (int64_t i = 0; i < args.rows(); ++i) {
      const int64_t visible = args.causal ? i + 1 : args.keys();
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t key = 0; key < visible; ++key) {
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
        weights[static_cast<size_t>(key)] = dot * scale;
        largest = std::fmax(largest, dot * scale);
      }
      double total = 0;
      for (int64_t key = 0; key < visible; ++key) {
        double& weight = weights[static_cast<size_t>(key)];
        weight = std::exp(weight - largest);
        total += weight;
      }
      for (int64_t j = 0; j < head_dim; ++j) {
        double sum = 0;
        for (int64_t key = 0; key < visible; ++key) {
          sum += weights[static_cast<size_t>(key)] * load(args.v, key, kv_at + j);
        }
        store(args.out, i, at + j, static_cast<float>(sum / total));
      }
    }
  }
}

}  // namespace octet::ref
