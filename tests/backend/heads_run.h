// rotate_heads of q and k at once, rotate_quantize_heads and rotated_head_mean on any backend.
#pragma once

#include <algorithm>
#include <set>

#include "backend/norm_run.h"

namespace octet::test::model {

struct HeadsCase {
  DType type = DType::f32;
  int64_t rows = 1, heads = 1, head_dim = 2;
  int64_t gap = 3;  // elements between rows

  int64_t channels() const { return heads * head_dim; }
  std::string to_string() const {
    return fmt::format("{} {} rows, {} heads of {}, gap {}", name_of(type), rows, heads, head_dim,
                       gap);
  }
};

// Heads with angles, and with two weights, of the first and of the last.
struct HeadsOperands {
  GuardedMatrix x, weight, second_weight, cos, sin, mean;

  HeadsOperands(const HeadsCase& c, std::mt19937& random)
      : x(random_matrix(c.type, c.rows, c.channels(), random, 2, 0.3f, c.gap)),
        weight(random_vector(DType::f32, c.head_dim, random, 0.3f, 1)),
        second_weight(random_vector(DType::f32, c.head_dim, random, 0.3f, 1)),
        cos(random_matrix(DType::f32, c.rows, c.head_dim / 2, random, 3, 0, 0)),
        sin(cos),
        mean(random_vector(DType::f32, c.channels(), random, 0.5f)) {
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.head_dim / 2; ++j) {
        const float angle = read_element(cos.view(), i, j);
        write_element(cos.view(), i, j, std::cos(angle));
        write_element(sin.view(), i, j, std::sin(angle));
      }
    }
  }

  HeadRotation on_host(const HeadsCase& c, int64_t second_heads) {
    return {.heads = c.heads,
            .eps = 1e-5f,
            .weight = as_vector(weight.view()),
            .cos = cos.view(),
            .sin = sin.view(),
            .second_heads = second_heads,
            .second_weight = as_vector(second_weight.view())};
  }
};

// The same in a backend's memory, but for x.
class DeviceHeads {
 public:
  DeviceHeads(Backend& backend, HeadsOperands& host, HeadRotation how)
      : weight_(backend, host.weight),
        second_weight_(backend, host.second_weight),
        cos_(backend, host.cos),
        sin_(backend, host.sin),
        mean_(backend, host.mean),
        how_(std::move(how)) {
    how_.weight = weight_.vector();
    how_.second_weight = second_weight_.vector();
    how_.cos = cos_.view();
    how_.sin = sin_.view();
  }
  const HeadRotation& how() const { return how_; }
  ConstTensorView mean() const { return mean_.vector(); }

 private:
  Operand weight_, second_weight_, cos_, sin_, mean_;
  HeadRotation how_;
};

// One call for q and k gives the bits of one for each.
inline void expect_two_weights_equal_two_calls(Backend& backend, const HeadsCase& c,
                                               int64_t second_heads, std::mt19937& random) {
  SCOPED_TRACE(c.to_string());
  HeadsOperands operands(c, random);
  const DeviceHeads device(backend, operands, operands.on_host(c, second_heads));
  GuardedMatrix got = operands.x, want = operands.x;
  Operand at_once(backend, got), one_by_one(backend, want);
  backend.rotate_heads(at_once.view(), device.how());

  const int64_t first_heads = c.heads - second_heads;
  TensorView first = one_by_one.view(), second = one_by_one.view();
  first.shape[1] = first_heads * c.head_dim;
  second.shape[1] = second_heads * c.head_dim;
  second.data += first.shape[1] * bits_of(c.type) / 8;
  HeadRotation of_first = device.how(), of_second = device.how();
  of_first.heads = first_heads;
  of_second.heads = second_heads;
  of_first.second_heads = of_second.second_heads = 0;
  of_second.weight = of_second.second_weight;
  if (first_heads > 0) backend.rotate_heads(first, of_first);
  if (second_heads > 0) backend.rotate_heads(second, of_second);
  at_once.download();
  one_by_one.download();
  ASSERT_TRUE(same_bits(got.view(), want.view()));
}

// F32 heads get the bits of rotate_heads(), a subtraction and quantize_rows() on the same backend;
// BF16 heads are within one of ref's codes, since a norm in f32 is not exactly its.
// `with_mean`: of the last heads, how many lose it.
inline void expect_quantized_heads_right(Backend& backend, const HeadsCase& c, int64_t with_mean,
                                         std::mt19937& random) {
  SCOPED_TRACE(fmt::format("{}, {} with a mean", c.to_string(), with_mean));
  constexpr float kFactor = 0.17f;
  HeadsOperands operands(c, random);
  const bool with_nan = c.rows > 5 && c.heads > 1;
  if (with_nan) write_element(operands.x.view(), 5, c.head_dim + 1, kNaN);
  const int64_t second_heads = c.heads / 2;
  const DeviceHeads device(backend, operands, operands.on_host(c, second_heads));
  const Operand x(backend, operands.x);
  GuardedMatrix got(DType::i8, c.rows, c.channels(), c.channels() + c.gap);
  GuardedMatrix got_scales(DType::f32, c.heads, c.rows, c.rows + 5);
  Operand codes(backend, got), scales(backend, got_scales);
  ConstTensorView mean = device.mean();
  mean.shape = {with_mean * c.head_dim};
  backend.rotate_quantize_heads(x.view(), device.how(), with_mean > 0 ? mean : ConstTensorView(),
                                {codes.view(), scales.view(), kFactor});
  codes.download();
  scales.download();

  // A head per row.
  const bool exact = c.type == DType::f32;
  GuardedMatrix rotated = exact ? operands.x : widened(operands.x);
  if (exact) {
    Operand on_device(backend, rotated);
    backend.rotate_heads(on_device.view(), device.how());
    on_device.download();
  } else {
    make_ref_backend()->rotate_heads(rotated.view(), operands.on_host(c, second_heads));
  }
  GuardedMatrix heads(DType::f32, c.rows * c.heads, c.head_dim);
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.channels(); ++j) {
      const int64_t of_mean = j - (c.heads - with_mean) * c.head_dim;
      const float less = of_mean < 0 ? 0 : read_element(operands.mean.view(), 0, of_mean);
      write_element(heads.view(), i * c.heads + j / c.head_dim, j % c.head_dim,
                    read_element(rotated.view(), i, j) - less);
    }
  }
  GuardedMatrix want(DType::i8, c.rows * c.heads, c.head_dim);
  std::vector<float> want_scales(static_cast<size_t>(c.rows * c.heads));
  make_ref_backend()->quantize_rows(heads.view(), {}, {want.view(), vector_view(want_scales)});
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t head = 0; head < c.heads; ++head) {
      const float scale = want_scales[static_cast<size_t>(i * c.heads + head)] * kFactor;
      const float got_scale = read_element(got_scales.view(), head, i);
      ASSERT_EQ(std::isnan(got_scale), with_nan && i == 5 && head == 1) << i << " " << head;
      if (exact && !std::isnan(got_scale)) {
        ASSERT_EQ(got_scale, scale) << i << " " << head;
      } else if (!exact && !std::isnan(got_scale)) {
        // Two roundings of numbers that may be larger than what is left after the mean.
        ASSERT_NEAR(got_scale, scale, 16 * kFewRoundings * (scale + kFactor)) << i << " " << head;
      }
      for (int64_t j = 0; j < c.head_dim; ++j) {
        const int got_code = got.view().row<int8_t>(i)[head * c.head_dim + j];
        const int want_code = want.view().row<int8_t>(i * c.heads + head)[j];
        ASSERT_LE(std::abs(got_code - want_code), exact ? 0 : 1) << i << " " << head << " " << j;
      }
    }
  }
}

inline void expect_head_mean_right(Backend& backend, const HeadsCase& c, std::mt19937& random) {
  SCOPED_TRACE(c.to_string());
  HeadsOperands operands(c, random);
  const int64_t second_heads = c.heads / 2;
  const DeviceHeads device(backend, operands, operands.on_host(c, second_heads));
  const Operand x(backend, operands.x);
  GuardedMatrix got(DType::f32, 1, c.channels()), again(DType::f32, 1, c.channels());
  Operand means(backend, got), means_again(backend, again);
  backend.rotated_head_mean(x.view(), device.how(), means.vector());
  backend.rotated_head_mean(x.view(), device.how(), means_again.vector());
  means.download();
  means_again.download();
  EXPECT_TRUE(same_bits(got.view(), again.view()));
  GuardedMatrix wide = widened(operands.x), want(DType::f32, 1, c.channels());
  make_ref_backend()->rotated_head_mean(wide.view(), operands.on_host(c, second_heads),
                                        as_vector(want.view()));
  // Of terms up to twice the root of head_dim, however small the mean.
  const double term = 2 * std::sqrt(static_cast<double>(c.head_dim));
  expect_close(got.view(), want.view(), [&](int64_t, int64_t) { return kFewRoundings * term; });
}

inline void expect_rotate_heads_with_two_weights_right(Backend& backend) {
  std::mt19937 random(8);
  for (const DType type : kTypes) {
    for (const HeadsCase& c : {HeadsCase{type, 5, 3, 8}, {type, 33, 4, 64}, {type, 6, 10, 128}}) {
      for (const int64_t second : {int64_t{1}, c.heads / 2, c.heads}) {
        expect_two_weights_equal_two_calls(backend, c, second, random);
      }
    }
  }
}

inline void expect_rotate_quantize_heads_right(Backend& backend) {
  std::mt19937 random(9);
  for (const DType type : kTypes) {
    for (const HeadsCase& c : {HeadsCase{type, 1, 1, 2},
                               {type, 7, 3, 8},
                               {type, 33, 4, 64},
                               {type, 9, 5, 72},
                               {type, 6, 3, 128},
                               {type, 3, 2, 256}}) {
      for (const int64_t with_mean : std::set<int64_t>{0, 1, c.heads / 2, c.heads}) {
        expect_quantized_heads_right(backend, c, with_mean, random);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

inline void expect_rotated_head_mean_right(Backend& backend) {
  std::mt19937 random(10);
  for (const DType type : kTypes) {
    // A GPU takes blocks of 128 rows.
    for (const HeadsCase& c : {HeadsCase{type, 1, 1, 2},
                               {type, 7, 3, 8},
                               {type, 100, 4, 64},
                               {type, 300, 2, 72},
                               {type, 128, 1, 2},
                               {type, 129, 3, 128}}) {
      expect_head_mean_right(backend, c, random);
    }
  }
}

}  // namespace octet::test::model
