// Fits the model to what was measured on a card: measured_h200.json.
//
// Least squares of the logarithms of predicted over measured times, one coefficient after the
// other, in rounds until they settle: each of them has a single best value given the others. No
// step is ever fitted to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/predict/model.h"

namespace octet::predict {

// Times in microseconds, 0 where they were not measured.
struct MeasuredLinear {
  int64_t m = 0, n = 0, k = 0;
  Path path = Path::int8;
  double cold_us = 0, load_us = 0;
  bool product = false;  // alone; else from bf16 to bf16, with the quantization of its activations

  bool is_of(int64_t m_, int64_t n_, int64_t k_) const { return m == m_ && n == n_ && k == k_; }
  bool is_like(const MeasuredLinear& other) const { return is_of(other.m, other.n, other.k); }
  double us(Load load) const { return load == Load::cold ? cold_us : load_us; }
};

struct MeasuredPass {
  int64_t m = 0, k = 0;
  double cold_us = 0;
};

struct MeasuredAttention {
  int64_t tokens = 0;
  Attention kind = Attention::bf16;
  double cold_us = 0, load_us = 0;

  bool is_like(const MeasuredAttention& other) const { return tokens == other.tokens; }
  double us(Load load) const { return load == Load::cold ? cold_us : load_us; }
};

struct MeasuredClock {
  Path path = Path::int8;
  double ghz = 0;
};

struct MeasuredStep {
  int size = 0, text_tokens = 0;
  std::string path;  // int8, int8_attention, bf16, fp8
  double ms = 0;
  double linears_ms = 0, attention_ms = 0, rows_ms = 0;  // 0: not told apart
};

struct Measured {
  std::string card;
  std::string family;                   // whose linears and steps these are
  int64_t heads = 0, head_size = 0;     // of the attention
  std::vector<MeasuredLinear> linears;  // products among them
  std::vector<MeasuredPass> quantize;
  std::vector<MeasuredAttention> attention;
  std::vector<MeasuredClock> clocks;  // without pause
  std::vector<MeasuredStep> steps;    // never fitted to
};

const Measured& measured();

const char* name_of(Path path);

Coefficients fit(const Card& card, const Measured& measured);

// fit() to everything in measured_h200.json, made once.
const Coefficients& calibrated();

// A figure of the measured card, predicted by coefficients that were fitted without any figure of
// its shape (linears: same m, n and k; attention: as many tokens), or without steps. The two times
// of the quantization alone, which INT8 linears of 4096 rows have in them, stay in.
struct HeldOut {
  enum class Kind { linear, attention, step, part };  // part: of a step

  Kind kind = Kind::linear;
  std::string what;  // "int8 4096 x 13824 x 4608, cold"
  double measured = 0, predicted = 0;
  const char* unit = "us";
  double error() const { return measured > 0 ? predicted / measured - 1 : 0; }
};

std::vector<HeldOut> hold_out_each();

}  // namespace octet::predict
