// quantize_values, and attention with values in 8 bits, on any backend, compared with ref.
#pragma once

#include <functional>

#include "backend/attention_run.h"
#include "base/checked.h"

namespace octet::test::model {

inline int64_t coded_blocks(int64_t keys) { return ceil_div(keys, QuantizedValues::kKeys); }

// Values as codes, in host memory.
struct ValueCodes {
  GuardedMatrix codes, scales;

  ValueCodes(int64_t keys, int64_t heads, int64_t head_dim, int64_t gap = 16)
      : codes(DType::u8, heads * head_dim, coded_blocks(keys) * QuantizedValues::kKeys,
              coded_blocks(keys) * QuantizedValues::kKeys + gap),
        scales(DType::f32, heads, coded_blocks(keys), coded_blocks(keys) + 3) {}
  QuantizedValues view() { return {codes.view(), scales.view()}; }
};

struct ValuesCase {
  DType type = DType::f32;
  int64_t keys = 1, heads = 1, head_dim = 8;
  int64_t gap = 8;

  std::string to_string() const {
    return fmt::format("{} {} keys, {} heads of {}, {} apart", name_of(type), keys, heads, head_dim,
                       gap);
  }
};

// Bit for bit ref's, which in turn puts each value where QuantizedValues says, half a step off at
// most. With a block of zeros and one with a NaN, where there are several.
inline void expect_quantized_values_right(Backend& backend, const ValuesCase& c,
                                          std::mt19937& random) {
  SCOPED_TRACE(c.to_string());
  constexpr int64_t kKeys = QuantizedValues::kKeys;
  GuardedMatrix v = random_matrix(c.type, c.keys, c.heads * c.head_dim, random, 3, 0.5f, c.gap);
  if (c.keys > kKeys) {
    for (int64_t key = 0; key < kKeys; ++key) {
      for (int64_t j = 0; j < c.head_dim; ++j) write_element(v.view(), key, j, 0);
    }
    write_element(v.view(), kKeys, (c.heads - 1) * c.head_dim, kNaN);
  }
  ValueCodes got(c.keys, c.heads, c.head_dim, c.gap), want(c.keys, c.heads, c.head_dim);
  {
    const Operand device_v(backend, v);
    Operand codes(backend, got.codes), scales(backend, got.scales);
    backend.quantize_values(device_v.view(), c.heads, {codes.view(), scales.view()});
    codes.download();
    scales.download();
  }
  make_ref_backend()->quantize_values(v.view(), c.heads, want.view());
  ASSERT_TRUE(same_bits(got.codes.view(), want.codes.view()));
  for (int64_t head = 0; head < c.heads; ++head) {
    for (int64_t block = 0; block < coded_blocks(c.keys); ++block) {
      const float scale = read_element(want.scales.view(), head, block);
      const float got_scale = read_element(got.scales.view(), head, block);
      ASSERT_EQ(std::isnan(got_scale), std::isnan(scale)) << head << " " << block;
      if (!std::isnan(scale)) {
        ASSERT_EQ(got_scale, scale) << head << " " << block;
      }
      ASSERT_EQ(std::isnan(scale), block == 1 && head == c.heads - 1);
      for (int64_t j = 0; j < c.head_dim * kKeys; ++j) {
        const int64_t channel = head * c.head_dim + j / kKeys, column = block * kKeys + j % kKeys;
        const int code = want.codes.view().row<uint8_t>(channel)[column] - 128;
        const int64_t key = QuantizedValues::key_at(column);
        if (key >= c.keys || std::isnan(scale)) {
          ASSERT_EQ(code, 0) << channel << " " << column;
        } else {
          ASSERT_NEAR(code * scale, read_element(v.view(), key, channel), 0.501f * scale)
              << channel << " " << column;
        }
      }
    }
  }
}

inline void expect_quantize_values_right(Backend& backend) {
  std::mt19937 random(14);
  for (const DType type : kTypes) {
    for (const ValuesCase& c : {ValuesCase{type, 1, 1, 1},
                                {type, 15, 2, 8},
                                {type, 128, 1, 64, 0},
                                {type, 129, 3, 72},
                                {type, 300, 2, 20, 3},
                                {type, 130, 3, 128},
                                {type, 257, 2, 256},
                                {type, 140, 2, 264}}) {
      expect_quantized_values_right(backend, c, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Operands of attention as codes.
struct CodedOperands {
  AttentionOperands operands;
  AttentionCodes q, k;
  ValueCodes v;

  CodedOperands(const AttentionCase& c, std::mt19937& random, float deviation = 1,
                const std::function<void(AttentionOperands&)>& change = {})
      : operands(changed(c, random, deviation, change)),
        q(operands.q, c.heads),
        k(operands.k, c.kv_heads),
        v(c.keys, c.kv_heads, c.head_dim) {
    make_ref_backend()->quantize_values(operands.v.view(), c.kv_heads, v.view());
  }

  void run(Backend& backend, const AttentionCase& c, GuardedMatrix& result) {
    const Operand q_codes(backend, q.codes), q_scales(backend, q.scales);
    const Operand k_codes(backend, k.codes), k_scales(backend, k.scales);
    const Operand v_codes(backend, v.codes), v_scales(backend, v.scales);
    Operand out(backend, result);
    backend.attention({q_codes.view(), k_codes.view(), v_codes.view(), out.view(), c.heads,
                       c.kv_heads, c.causal, q_scales.view(), k_scales.view(), v_scales.view()});
    out.download();
  }

 private:
  static AttentionOperands changed(const AttentionCase& c, std::mt19937& random, float deviation,
                                   const std::function<void(AttentionOperands&)>& change) {
    AttentionOperands made(c, random, deviation);
    if (change) change(made);
    return made;
  }
};

// Each head of each row by its norm. A score that is off by some roundings, and an exponential by a
// few units in its last place, now and then give a weight the code next to the right one: 1 of 255.
// Where a few of a hundred weights do, and the others are not all close to 0, that is some
// thousandths of the result; its rounding to BF16 is another two.
inline void expect_heads_close(const ConstTensorView& got, const ConstTensorView& want,
                               const AttentionCase& c) {
  constexpr double kMost = 0.01;
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t head = 0; head < c.heads; ++head) {
      double difference = 0, size = 0;
      for (int64_t j = head * c.head_dim; j < (head + 1) * c.head_dim; ++j) {
        const double right = read_element(want, i, j);
        difference += std::pow(read_element(got, i, j) - right, 2);
        size += right * right;
      }
      ASSERT_LE(std::sqrt(difference), kMost * std::sqrt(size)) << i << " " << head;
    }
  }
}

// Against ref on the same codes.
inline void expect_coded_attention_right(
    Backend& backend, const AttentionCase& c, float deviation = 1,
    const std::function<void(AttentionOperands&)>& change = {}) {
  SCOPED_TRACE("INT8 values, " + c.to_string());
  // GPUs have kernels for some sizes and BF16; tests/cuda forces each of these.
  if (!backend.why_no_int8_values(c.head_dim, c.type).empty()) return;
  std::mt19937 random(static_cast<uint32_t>(c.rows * 17 + c.keys * 3 + c.head_dim));
  CodedOperands coded(c, random, deviation, change);
  GuardedMatrix want(DType::f32, c.rows, c.heads * c.head_dim);
  coded.run(backend, c, coded.operands.out);
  coded.run(*make_ref_backend(), c, want);
  expect_heads_close(coded.operands.out.view(), want.view(), c);
}

inline void expect_coded_attention_right(Backend& backend) {
  for (const DType type : kTypes) {
    expect_coded_attention_right(backend, {type, 33, 47, 2, 2, 32});
    expect_coded_attention_right(backend, {type, 5, 130, 4, 2, 64});
    expect_coded_attention_right(backend, {type, 3, 1, 1, 1, 64});
    expect_coded_attention_right(backend, {type, 70, 70, 2, 1, 128, true});
    expect_coded_attention_right(backend, {type, 20, 600, 1, 1, 256}, 4);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// What the codes stand for, attended to in F32, is close: 8 bits cost the weights 0.3 of 255 each.
inline void expect_coded_attention_close(Backend& backend) {
  const AttentionCase c{DType::f32, 40, 500, 2, 1, 64};
  if (!backend.why_no_int8_values(c.head_dim, c.type).empty()) return;
  std::mt19937 random(15);
  CodedOperands coded(c, random);
  GuardedMatrix want(DType::f32, c.rows, c.heads * c.head_dim);
  coded.run(backend, c, coded.operands.out);
  make_ref_backend()->attention({coded.operands.q.view(), coded.operands.k.view(),
                                 coded.operands.v.view(), want.view(), c.heads, c.kv_heads});
  double difference = 0, size = 0;
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.heads * c.head_dim; ++j) {
      const double right = read_element(want.view(), i, j);
      difference += std::pow(read_element(coded.operands.out.view(), i, j) - right, 2);
      size += right * right;
    }
  }
  EXPECT_LT(std::sqrt(difference / size), 0.03);
}

// Of q: its row and head alone. Of k: every row that sees the key. Of v: its whole head.
inline void expect_coded_attention_keeps_nan(Backend& backend, int64_t head_dim,
                                             DType type = DType::f32) {
  if (!backend.why_no_int8_values(head_dim, type).empty()) return;
  for (const bool causal : {false, true}) {
    const AttentionCase c{type, 150, 150, 4, 2, head_dim, causal};
    SCOPED_TRACE(c.to_string());
    std::mt19937 random(16);
    const auto expect_nan = [&](CodedOperands& coded, auto is_expected) {
      coded.run(backend, c, coded.operands.out);
      for (int64_t i = 0; i < c.rows; ++i) {
        for (int64_t j = 0; j < c.heads * head_dim; ++j) {
          ASSERT_EQ(std::isnan(read_element(coded.operands.out.view(), i, j)),
                    is_expected(i, j / head_dim))
              << i << " " << j;
        }
      }
    };
    CodedOperands of_q(c, random), of_k(c, random), of_v(c, random);
    write_element(of_q.q.scales.view(), 1, 149, kNaN);
    expect_nan(of_q, [](int64_t i, int64_t head) { return i == 149 && head == 1; });
    write_element(of_k.k.scales.view(), 1, 40, kNaN);
    expect_nan(of_k,
               [&](int64_t i, int64_t head) { return head / 2 == 1 && (!causal || i >= 40); });
    if (causal) continue;  // it may show in rows that do not see it
    write_element(of_v.v.scales.view(), 0, 1, kNaN);
    expect_nan(of_v, [](int64_t, int64_t head) { return head / 2 == 0; });
  }
}

inline void expect_coded_attention_keeps_nan(Backend& backend) {
  expect_coded_attention_keeps_nan(backend, 16);
}

}  // namespace octet::test::model
