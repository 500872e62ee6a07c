#include "measure/predict/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "measure/predict/step.h"

namespace octet::predict {
namespace {

double squared_error(double predicted, double actual) {
  if (actual <= 0) return 0;
  const double error = std::log(predicted / actual);
  return error * error;
}

// What the model says of a row of the measured ones.
double predicted_us(const Card& card, const Coefficients& c, Load load, const MeasuredLinear& row) {
  return row.product ? product_time(card, c, row.path, load, row.m, row.n, row.k).us
                     : linear_time(card, c, row.path, load, row.m, row.n, row.k).us;
}

double linear_error(const Card& card, const Coefficients& c, const MeasuredLinear& row) {
  double sum = 0;
  for (const Load load : {Load::cold, Load::steady}) {
    if (row.us(load) > 0) sum += squared_error(predicted_us(card, c, load, row), row.us(load));
  }
  return sum;
}

double linears_error(const Card& card, const Coefficients& c, const Measured& all, Path path) {
  double sum = 0;
  for (const MeasuredLinear& row : all.linears) {
    if (row.path == path) sum += linear_error(card, c, row);
  }
  return sum;
}

// Of the clock that the path's linears run at without pause, against the one that was read.
double clock_error(const Card& card, const Coefficients& c, const Measured& all, Path path) {
  double sum = 0;
  for (const MeasuredClock& clock : all.clocks) {
    if (clock.path != path) continue;
    for (const MeasuredLinear& row : all.linears) {
      if (row.path != path || row.load_us <= 0) continue;
      const LinearTime time = product_time(card, c, path, Load::steady, row.m, row.n, row.k);
      sum += squared_error(time.clock_ghz, clock.ghz);
    }
  }
  return sum;
}

double attention_error(const Card& card, const Coefficients& c, const Measured& all,
                       Attention kind) {
  double sum = 0;
  for (const MeasuredAttention& row : all.attention) {
    if (row.kind != kind) continue;
    for (const Load load : {Load::cold, Load::steady}) {
      const double actual = load == Load::cold ? row.cold_us : row.load_us;
      sum += squared_error(attention_us(card, c, kind, load, row.tokens, all.heads, all.head_size),
                           actual);
    }
  }
  return sum;
}

// Passes over rows are a straight line, launch + bytes / rate, so relative errors have their least
// squares in closed form. A single size, or a line that makes no sense, tells only the rate.
void fit_passes(const Card& card, const Measured& all, Coefficients& c) {
  double ww = 0, wb = 0, bb = 0, w = 0, b = 0;
  for (const MeasuredPass& row : all.quantize) {
    if (row.cold_us <= 0) continue;
    const double weight = 1 / row.cold_us;
    const double bytes = 3.0 * double(row.m) * double(row.k) * weight;
    ww += weight * weight;
    wb += weight * bytes;
    bb += bytes * bytes;
    w += weight;
    b += bytes;
  }
  if (bb <= 0) return;
  const double determinant = ww * bb - wb * wb;
  double us_per_byte = 0;
  if (determinant > 1e-9 * ww * bb) {
    c.row_launch_us = (w * bb - b * wb) / determinant;
    us_per_byte = (ww * b - wb * w) / determinant;
  }
  if (us_per_byte <= 0 || c.row_launch_us < 0) {
    c.row_launch_us = 0;
    us_per_byte = b / bb;
  }
  c.row_share = 1e-3 / (us_per_byte * card.memory_gbs);
}

// A coefficient, the range that it makes sense in, and what is to become small by it.
struct Knob {
  double Coefficients::*value;
  double low, high;
  std::function<double(const Coefficients&)> error;
};

// The best of a few values, then golden section around it: where the power limit does not bite, an
// error is flat in the energies, and golden section alone could get lost there. A coefficient that
// no figure depends on keeps its value.
void turn(const Knob& knob, Coefficients& coefficients) {
  constexpr double kGolden = 0.6180339887498949;
  constexpr int kValues = 12, kSections = 20;
  const double before = coefficients.*knob.value;
  const auto error_at = [&](double value) {
    coefficients.*knob.value = value;
    return knob.error(coefficients);
  };
  const double width = (knob.high - knob.low) / (kValues - 1);
  double best = before, least = error_at(before);
  bool is_flat = true;
  for (int i = 0; i < kValues; ++i) {
    const double value = knob.low + i * width;
    const double error = error_at(value);
    is_flat = is_flat && error == least;
    if (error < least) {
      best = value;
      least = error;
    }
  }
  coefficients.*knob.value = before;
  if (is_flat) return;
  double low = std::max(knob.low, best - width), high = std::min(knob.high, best + width);
  double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
  double at_left = error_at(left), at_right = error_at(right);
  for (int i = 0; i < kSections; ++i) {
    if (at_left <= at_right) {
      high = right;
      right = left;
      at_right = at_left;
      left = high - kGolden * (high - low);
      at_left = error_at(left);
    } else {
      low = left;
      left = right;
      at_left = at_right;
      right = low + kGolden * (high - low);
      at_right = error_at(right);
    }
  }
  coefficients.*knob.value = (low + high) / 2;
}

std::vector<Knob> knobs_of(const Card& card, const Measured& all) {
  using C = Coefficients;
  const auto linears = [&](Path path) {
    return [&card, &all, path](const C& c) { return linears_error(card, c, all, path); };
  };
  const auto clocks = [&](Path path) {
    return [&card, &all, path](const C& c) { return clock_error(card, c, all, path); };
  };
  const auto attention = [&](Attention kind) {
    return [&card, &all, kind](const C& c) { return attention_error(card, c, all, kind); };
  };
  const auto cold = [&card, &all](const C& c) {
    return linears_error(card, c, all, Path::int8) + linears_error(card, c, all, Path::bf16) +
           linears_error(card, c, all, Path::fp8);
  };
  return {
      {&C::unhidden_wgmma, 0, 1, linears(Path::int8)},
      {&C::bf16_share, 0.3, 1, linears(Path::bf16)},
      {&C::fp8_share, 0.3, 1, linears(Path::fp8)},
      {&C::int8_pj, 0.01, 3, clocks(Path::int8)},
      {&C::bf16_pj, 0.01, 3, clocks(Path::bf16)},
      {&C::fp8_pj, 0.01, 3, clocks(Path::fp8)},
      {&C::cold_power, 1, 3, cold},
      {&C::unhidden_mma, 0, 1, linears(Path::int8_mma)},
      {&C::attention_share, 0.3, 1, attention(Attention::bf16)},
      {&C::attention_int8_share, 0.3, 1, attention(Attention::int8_scores)},
      {&C::softmax_clocks, 0, 3, attention(Attention::bf16_mma)},
  };
}

std::string shape_text(const MeasuredLinear& row) {
  return fmt::format("{} {} x {} x {}{}", name_of(row.path), row.m, row.n, row.k,
                     row.product ? ", product" : "");
}

bool is_same_shape(const MeasuredLinear& a, const MeasuredLinear& b) {
  return a.is_of(b.m, b.n, b.k);
}

void hold_out_linears(const Card& card, const Measured& all, std::vector<HeldOut>& results) {
  std::vector<MeasuredLinear> shapes;
  for (const MeasuredLinear& row : all.linears) {
    const bool known = std::any_of(shapes.begin(), shapes.end(),
                                   [&](const auto& shape) { return is_same_shape(shape, row); });
    if (!known) shapes.push_back(row);
  }
  for (const MeasuredLinear& shape : shapes) {
    Measured others = all;
    std::erase_if(others.linears, [&](const auto& row) { return is_same_shape(row, shape); });
    const Coefficients c = fit(card, others);
    for (const MeasuredLinear& row : all.linears) {
      if (!is_same_shape(row, shape)) continue;
      for (const Load load : {Load::cold, Load::steady}) {
        if (row.us(load) <= 0) continue;
        results.push_back({HeldOut::Kind::linear,
                           shape_text(row) + (load == Load::cold ? ", cold" : ", load"),
                           row.us(load), predicted_us(card, c, load, row)});
      }
    }
  }
}

const char* attention_name(Attention kind) {
  switch (kind) {
    case Attention::bf16: return "bf16";
    case Attention::int8_scores: return "INT8 scores";
    case Attention::bf16_mma: return "bf16 by mma.sync";
  }
  return "?";
}

void hold_out_attention(const Card& card, const Measured& all, std::vector<HeldOut>& results) {
  std::set<int64_t> lengths;
  for (const MeasuredAttention& row : all.attention) lengths.insert(row.tokens);
  for (const int64_t tokens : lengths) {
    Measured others = all;
    std::erase_if(others.attention, [&](const auto& row) { return row.tokens == tokens; });
    const Coefficients c = fit(card, others);
    for (const MeasuredAttention& row : all.attention) {
      if (row.tokens != tokens) continue;
      for (const Load load : {Load::cold, Load::steady}) {
        const double actual = load == Load::cold ? row.cold_us : row.load_us;
        if (actual <= 0) continue;
        results.push_back(
            {HeldOut::Kind::attention,
             fmt::format("attention {}, {} tokens, {}", attention_name(row.kind), tokens,
                         load == Load::cold ? "cold" : "load"),
             actual, attention_us(card, c, row.kind, load, tokens, all.heads, all.head_size)});
      }
    }
  }
}

}  // namespace

Coefficients fit(const Card& card, const Measured& measured) {
  constexpr int kRounds = 4;
  const std::vector<Knob> knobs = knobs_of(card, measured);
  Coefficients coefficients;
  fit_passes(card, measured, coefficients);
  for (int round = 0; round < kRounds; ++round) {
    for (const Knob& knob : knobs) turn(knob, coefficients);
  }
  return coefficients;
}

const Coefficients& calibrated() {
  static const Coefficients coefficients = fit(card_of(measured().card), measured());
  return coefficients;
}

std::vector<HeldOut> hold_out_each() {
  const Measured& all = measured();
  const Card& card = card_of(all.card);
  std::vector<HeldOut> results;
  hold_out_linears(card, all, results);
  hold_out_attention(card, all, results);
  for (const MeasuredStep& step : all.steps) {
    const StepTime time = step_time(card, calibrated(), step.path, step.size, step.text_tokens);
    const std::string name =
        fmt::format("{} step at {} px, {} text tokens", step.path, step.size, step.text_tokens);
    results.push_back({HeldOut::Kind::step, name, step.ms, time.ms(), "ms"});
    if (step.linears_ms > 0) {
      results.push_back(
          {HeldOut::Kind::part, name + ": linears", step.linears_ms, time.linears_ms, "ms"});
    }
    if (step.attention_ms > 0) {
      results.push_back(
          {HeldOut::Kind::part, name + ": attention", step.attention_ms, time.attention_ms, "ms"});
    }
    if (step.rows_ms > 0) {
      results.push_back(
          {HeldOut::Kind::part, name + ": row passes", step.rows_ms, time.rows_ms, "ms"});
    }
  }
  return results;
}

}  // namespace octet::predict
