// attention on any backend, compared with ref.
//
// Error before the rounding of the result, relative to A = sum of weights * |v|, which is ref's
// attention with the magnitudes of v. F32: a score is a sum of head_dim products, off by that many
// roundings of |q||k| / sqrt(head_dim), and so is, relatively, its weight, above and below the
// fraction; the sums over the keys are a rounding for each key at worst. BF16: a weight that is
// rounded to bf16 before it multiplies v is off by 2^-8 of itself, its sum as well if it is of the
// rounded ones.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>

#include "backend/model_run.h"

namespace octet::test::model {

struct AttentionCase {
  DType type = DType::f32;
  int64_t rows = 1, keys = 1;
  int64_t heads = 1, kv_heads = 1, head_dim = 8;
  bool causal = false;

  std::string to_string() const {
    return fmt::format("{} {} rows, {} keys, {} heads on {} of {}{}", name_of(type), rows, keys,
                       heads, kv_heads, head_dim, causal ? ", causal" : "");
  }
};

struct AttentionOperands {
  GuardedMatrix q, k, v, out;

  AttentionOperands(const AttentionCase& c, std::mt19937& random, float deviation = 1)
      : q(random_matrix(c.type, c.rows, c.heads * c.head_dim, random, deviation)),
        k(random_matrix(c.type, c.keys, c.kv_heads * c.head_dim, random, deviation, 0, 8)),
        v(random_matrix(c.type, c.keys, c.kv_heads * c.head_dim, random)),
        out(c.type, c.rows, c.heads * c.head_dim, c.heads * c.head_dim + 16) {}

  void run(Backend& backend, const AttentionCase& c) {
    const Operand device_q(backend, q), device_k(backend, k), device_v(backend, v);
    Operand device_out(backend, out);
    backend.attention({device_q.view(), device_k.view(), device_v.view(), device_out.view(),
                       c.heads, c.kv_heads, c.causal});
    device_out.download();
  }
};

inline double largest_norm(GuardedMatrix& matrix, int64_t head_dim) {
  double largest = 0;
  const TensorView view = matrix.view();
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    for (int64_t first = 0; first < view.shape[1]; first += head_dim) {
      double squares = 0;
      for (int64_t j = first; j < first + head_dim; ++j) {
        squares += std::pow(read_element(view, i, j), 2);
      }
      largest = std::fmax(largest, std::sqrt(squares));
    }
  }
  return largest;
}

// What results are compared with: ref, or a backend that is faster, in F32. That one was compared
// with ref by these checks, and may be as far off as they allow.
struct Truth {
  std::unique_ptr<Backend> backend = make_ref_backend();
  double slack = 1;

  static Truth of_cpu() { return {make_cpu_backend(), 2}; }
};

inline void compare_attention(AttentionOperands& operands, const AttentionCase& c,
                              const Truth& truth = {}) {
  GuardedMatrix q = widened(operands.q), k = widened(operands.k), v = widened(operands.v);
  GuardedMatrix absolute_v = magnitudes(operands.v);
  const int64_t columns = c.heads * c.head_dim;
  GuardedMatrix want(DType::f32, c.rows, columns), scale(DType::f32, c.rows, columns);
  AttentionArgs args{q.view(), k.view(), v.view(), want.view(), c.heads, c.kv_heads, c.causal};
  truth.backend->attention(args);
  args.v = absolute_v.view();
  args.out = scale.view();
  truth.backend->attention(args);

  const auto head_dim = static_cast<double>(c.head_dim);
  const double score =
      largest_norm(q, c.head_dim) * largest_norm(k, c.head_dim) / std::sqrt(head_dim);
  const double of_weights = 2 * (head_dim + 4) * 0x1p-24 * score;
  const double of_sums = static_cast<double>(c.keys + 16) * 0x1p-24;
  const double of_rounding = c.type == DType::bf16 ? 2 * 0x1p-8 : 0;
  expect_close(operands.out.view(), want.view(), [&](int64_t i, int64_t j) {
    return (truth.slack * (of_weights + 2 * of_sums) + of_rounding) *
           read_element(scale.view(), i, j);
  });
}

inline void expect_attention_right(Backend& backend, const AttentionCase& c, float deviation = 1) {
  SCOPED_TRACE(c.to_string());
  std::mt19937 random(static_cast<uint32_t>(c.rows * 31 + c.keys * 7 + c.head_dim));
  AttentionOperands operands(c, random, deviation);
  operands.run(backend, c);
  compare_attention(operands, c);
}

inline void expect_attention_right(Backend& backend) {
  for (const DType type : kTypes) {
    for (const int64_t head_dim : {8, 16, 64, 72, 128, 256, 512}) {
      expect_attention_right(backend, {type, 33, 47, 2, 2, head_dim});
    }
    for (const int64_t length : {1, 2, 15, 63, 64, 65, 130, 200}) {
      expect_attention_right(backend, {type, length, length, 2, 1, 16});
      expect_attention_right(backend, {type, 5, length, 1, 1, 64});
      expect_attention_right(backend, {type, length, 5, 1, 1, 64});
    }
    expect_attention_right(backend, {type, 40, 40, 6, 2, 32});  // three heads share one
    expect_attention_right(backend, {type, 40, 40, 4, 1, 24});
    expect_attention_right(backend, {type, 3, 1100, 1, 1, 16});  // several blocks of keys
    expect_attention_right(backend, {type, 300, 20, 3, 3, 16});  // and of rows
    if (testing::Test::HasFatalFailure()) return;
  }
}

inline void expect_causal_attention_right(Backend& backend) {
  for (const DType type : kTypes) {
    for (const int64_t length : {1, 2, 31, 63, 64, 65, 130, 200}) {
      expect_attention_right(backend, {type, length, length, 2, 1, 16, true});
    }
    expect_attention_right(backend, {type, 97, 97, 4, 2, 128, true});
    expect_attention_right(backend, {type, 700, 700, 1, 1, 8, true});
  }
}

// Scores of hundreds, whose exponential would overflow: one key takes all, or two share. Also large
// values of v.
inline void expect_attention_of_large_scores_right(Backend& backend) {
  for (const DType type : kTypes) {
    expect_attention_right(backend, {type, 40, 70, 2, 2, 64}, 8);
    expect_attention_right(backend, {type, 40, 40, 2, 2, 64, true}, 8);
    const AttentionCase c{type, 20, 600, 1, 1, 64};
    SCOPED_TRACE(c.to_string());
    std::mt19937 random(21);
    AttentionOperands operands(c, random);
    for (int64_t key = 0; key < c.keys; ++key) {
      for (int64_t j = 0; j < c.head_dim; ++j) {
        // Scores grow along the keys, so that a running maximum changes in every block.
        write_element(operands.k.view(), key, j, static_cast<float>(key / 8));
        write_element(operands.v.view(), key, j, read_element(operands.v.view(), key, j) * 1e4f);
      }
    }
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.head_dim; ++j) {
        write_element(operands.q.view(), i, j, i % 3 == 0 ? 1.0f : i % 3 == 1 ? -1.0f : 0.125f);
      }
    }
    operands.run(backend, c);
    compare_attention(operands, c);
  }
}

// Heads as codes: q and k of the operands, quantized here, each head of a row by itself.
struct AttentionCodes {
  GuardedMatrix codes, scales;

  AttentionCodes(GuardedMatrix& x, int64_t heads)
      : codes(DType::i8, x.view().shape[0], x.view().shape[1], x.view().shape[1] / 16 * 16 + 32),
        scales(DType::f32, heads, x.view().shape[0], x.view().shape[0] / 4 * 4 + 8) {
    const int64_t rows = x.view().shape[0], head_dim = x.view().shape[1] / heads;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t head = 0; head < heads; ++head) {
        float amax = 0;
        for (int64_t j = 0; j < head_dim; ++j) {
          amax = std::fmax(amax, std::fabs(read_element(x.view(), i, head * head_dim + j)));
        }
        for (int64_t j = 0; j < head_dim; ++j) {
          const float value = read_element(x.view(), i, head * head_dim + j);
          codes.view().as<int8_t>()[i * codes.view().row_stride() + head * head_dim + j] =
              static_cast<int8_t>(amax > 0 ? std::nearbyint(value * (127 / amax)) : 0);
        }
        write_element(scales.view(), head, i, amax / 127);
      }
    }
  }
  float largest_scale() {
    float largest = 0;
    for (int64_t head = 0; head < scales.view().shape[0]; ++head) {
      for (int64_t i = 0; i < scales.view().shape[1]; ++i) {
        largest = std::fmax(largest, read_element(scales.view(), head, i));
      }
    }
    return largest;
  }
};

// Against ref on the same codes. Scores are integers times two scales, rounded twice; a kernel that
// carries an offset in its sums loses less than one of them more.
inline void expect_int8_attention_right(Backend& backend, const AttentionCase& c,
                                        float deviation = 1, const Truth& truth = {}) {
  SCOPED_TRACE("INT8 scores, " + c.to_string());
  // GPUs have kernels for some sizes and BF16; tests/cuda forces each of these.
  if (!backend.why_no_int8_attention(c.head_dim, c.type).empty()) return;
  std::mt19937 random(static_cast<uint32_t>(c.rows * 13 + c.keys * 5 + c.head_dim));
  AttentionOperands operands(c, random, deviation);
  operands.v = random_matrix(c.type, c.keys, c.kv_heads * c.head_dim, random, 1, 0, 8);
  // A row of zeros, whose scale is 0, sees all keys alike, and still none that is hidden from it.
  for (int64_t j = 0; c.rows > 2 && j < c.heads * c.head_dim; ++j) {
    write_element(operands.q.view(), c.rows / 2, j, 0);
  }
  AttentionCodes q(operands.q, c.heads), k(operands.k, c.kv_heads);
  {
    const Operand device_q(backend, q.codes), device_k(backend, k.codes);
    const Operand q_scales(backend, q.scales), k_scales(backend, k.scales);
    const Operand device_v(backend, operands.v);
    Operand device_out(backend, operands.out);
    backend.attention({device_q.view(), device_k.view(), device_v.view(), device_out.view(),
                       c.heads, c.kv_heads, c.causal, q_scales.view(), k_scales.view()});
    device_out.download();
  }
  GuardedMatrix v = widened(operands.v), absolute_v = magnitudes(operands.v);
  const int64_t columns = c.heads * c.head_dim;
  GuardedMatrix want(DType::f32, c.rows, columns), scale(DType::f32, c.rows, columns);
  AttentionArgs args{q.codes.view(), k.codes.view(), v.view(),        want.view(),    c.heads,
                     c.kv_heads,     c.causal,       q.scales.view(), k.scales.view()};
  truth.backend->attention(args);
  args.v = absolute_v.view();
  args.out = scale.view();
  truth.backend->attention(args);
  const auto head_dim = static_cast<double>(c.head_dim);
  const double unit = q.largest_scale() * k.largest_scale() / std::sqrt(head_dim);
  const double score = 127.0 * 127 * head_dim * unit;
  const double of_weights = 2 * ((head_dim + 4) * 0x1p-24 * score + unit);
  const double of_sums = static_cast<double>(c.keys + 16) * 0x1p-24;
  const double of_rounding = c.type == DType::bf16 ? 2 * 0x1p-8 : 0;
  expect_close(operands.out.view(), want.view(), [&](int64_t i, int64_t j) {
    return (truth.slack * (of_weights + 2 * of_sums) + of_rounding) *
           read_element(scale.view(), i, j);
  });
}

inline void expect_int8_attention_right(Backend& backend) {
  for (const DType type : kTypes) {
    expect_int8_attention_right(backend, {type, 33, 47, 2, 2, 32});
    expect_int8_attention_right(backend, {type, 5, 130, 4, 2, 64});
    expect_int8_attention_right(backend, {type, 70, 70, 2, 1, 128, true});
    expect_int8_attention_right(backend, {type, 20, 600, 1, 1, 256}, 4);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Of q: its row and head alone. Of v: its channel of all rows. Of k: every row that sees the key.
// With a payload where the type keeps one: arithmetic on the bits of an exponential must not turn
// it into a number.
inline void expect_attention_keeps_nan_in_place(Backend& backend) {
  for (const DType type : kTypes) {
    for (const bool causal : {false, true}) {
      const AttentionCase c{type, 70, 70, 4, 2, 16, causal};
      SCOPED_TRACE(c.to_string());
      std::mt19937 random(22);
      const auto nan = std::bit_cast<float>(0x7fffffffu);
      const auto expect_nan = [&](AttentionOperands& operands, auto is_expected) {
        operands.run(backend, c);
        for (int64_t i = 0; i < c.rows; ++i) {
          for (int64_t j = 0; j < c.heads * c.head_dim; ++j) {
            ASSERT_EQ(std::isnan(read_element(operands.out.view(), i, j)), is_expected(i, j))
                << i << " " << j;
          }
        }
      };
      AttentionOperands of_q(c, random), of_k(c, random), of_v(c, random);
      write_element(of_q.q.view(), 69, 16 + 3, nan);
      expect_nan(of_q, [](int64_t i, int64_t j) { return i == 69 && j / 16 == 1; });
      write_element(of_k.k.view(), 40, 16 + 3, nan);
      expect_nan(of_k, [&](int64_t i, int64_t j) { return j / 32 == 1 && (!causal || i >= 40); });
      if (causal) continue;  // a weight of zero times NaN may show in rows that do not see it
      write_element(of_v.v.view(), 40, 16 + 3, nan);
      expect_nan(of_v, [](int64_t, int64_t j) { return j == 2 * 16 + 3 || j == 3 * 16 + 3; });
    }
  }
}

}  // namespace octet::test::model
