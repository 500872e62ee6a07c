#include "measure/predict/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "base/error.h"
#include "base/never_destroyed.h"
#include "formats/json.h"
#include "measure/predict/step.h"
#include "measured_h200_text.h"

namespace octet::predict {
namespace {

constexpr std::pair<const char*, Path> kPathNames[] = {
    {"int8", Path::int8}, {"int8_mma", Path::int8_mma}, {"bf16", Path::bf16},
    {"fp8", Path::fp8},   {"nf4", Path::nf4},           {"fake", Path::fake},
};

Path path_named(const std::string& name) {
  for (const auto& [text, path] : kPathNames) {
    if (name == text) return path;
  }
  fail("measured_h200.json: path {} is unknown", name);
}

Attention attention_named(const std::string& name) {
  if (name == "bf16") return Attention::bf16;
  if (name == "int8") return Attention::int8_scores;
  check(name == "bf16_mma", "measured_h200.json: attention {} is unknown", name);
  return Attention::bf16_mma;
}

double number_in(const nlohmann::json& row, const char* name) { return row.value(name, 0.0); }

Measured measured_from_json(const nlohmann::json& json) {
  Measured all;
  all.card = json.at("card");
  all.family = json.at("family");
  all.heads = json.at("heads");
  all.head_size = json.at("head_size");
  for (const std::string list : {"linears", "products"}) {
    for (const nlohmann::json& row : json.at(list)) {
      all.linears.push_back({row.at("m"), row.at("n"), row.at("k"), path_named(row.at("path")),
                             number_in(row, "cold_us"), number_in(row, "load_us"),
                             list == "products"});
    }
  }
  for (const nlohmann::json& row : json.at("quantize")) {
    all.quantize.push_back({row.at("m"), row.at("k"), number_in(row, "cold_us")});
  }
  for (const nlohmann::json& row : json.at("attention")) {
    all.attention.push_back({row.at("tokens"), attention_named(row.at("path")),
                             number_in(row, "cold_us"), number_in(row, "load_us")});
  }
  for (const nlohmann::json& row : json.at("clocks")) {
    all.clocks.push_back({path_named(row.at("path")), row.at("mhz").get<double>() * 1e-3});
  }
  for (const nlohmann::json& row : json.at("steps")) {
    all.steps.push_back({row.at("size"), row.at("text_tokens"), row.at("path"),
                         number_in(row, "ms"), number_in(row, "linears_ms"),
                         number_in(row, "attention_ms"), number_in(row, "rows_ms")});
  }
  return all;
}

double squared_error(double predicted, double actual) {
  if (actual <= 0) return 0;
  const double error = std::log(predicted / actual);
  return error * error;
}

// What the model says of a row of the measured ones.
double predicted_us(const Card& card, const Coefficients& c, const Measured&, Load load,
                    const MeasuredLinear& row) {
  const auto time = row.product ? product_time : linear_time;
  return time(card, c, row.path, load, row.m, row.n, row.k).us;
}

double predicted_us(const Card& card, const Coefficients& c, const Measured& all, Load load,
                    const MeasuredAttention& row) {
  return attention_us(card, c, row.kind, load, row.tokens, all.heads, all.head_size);
}

double linears_error(const Card& card, const Coefficients& c, const Measured& all, Path path) {
  double sum = 0;
  for (const MeasuredLinear& row : all.linears) {
    if (row.path != path) continue;
    double of_row = 0;
    for (const Load load : {Load::cold, Load::steady}) {
      if (row.us(load) <= 0) continue;
      of_row += squared_error(predicted_us(card, c, all, load, row), row.us(load));
    }
    sum += of_row;
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
      sum += squared_error(predicted_us(card, c, all, load, row), row.us(load));
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

// A coefficient, the range in which it makes sense, and what it has to minimise.
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

const char* attention_name(Attention kind) {
  switch (kind) {
    case Attention::bf16: return "bf16";
    case Attention::int8_scores: return "INT8 scores";
    case Attention::bf16_mma: return "bf16 by mma.sync";
  }
  return "?";
}

std::string text_of(const MeasuredLinear& row) {
  return fmt::format("{} {} x {} x {}{}", name_of(row.path), row.m, row.n, row.k,
                     row.product ? ", product" : "");
}

std::string text_of(const MeasuredAttention& row) {
  return fmt::format("attention {}, {} tokens", attention_name(row.kind), row.tokens);
}

// Each row of a list, predicted without those that are like it.
template <class Row>
void hold_out(const Card& card, const Measured& all, std::vector<Row> Measured::*list,
              HeldOut::Kind kind, std::vector<HeldOut>& results) {
  std::vector<Row> left = all.*list;
  while (!left.empty()) {
    const auto is_like = [shape = left.front()](const Row& row) { return row.is_like(shape); };
    std::erase_if(left, is_like);
    Measured others = all;
    std::erase_if(others.*list, is_like);
    const Coefficients c = fit(card, others);
    for (const Row& row : all.*list) {
      if (!is_like(row)) continue;
      for (const Load load : {Load::cold, Load::steady}) {
        if (row.us(load) <= 0) continue;
        results.push_back({kind, text_of(row) + (load == Load::cold ? ", cold" : ", load"),
                           row.us(load), predicted_us(card, c, all, load, row)});
      }
    }
  }
}

}  // namespace

const Measured& measured() {
  static const auto& all = never_destroyed<Measured>(
      measured_from_json(parse_json(kMeasuredH200Text, "measured_h200.json")));
  return all;
}

const char* name_of(Path path) {
  for (const auto& [text, known] : kPathNames) {
    if (known == path) return text;
  }
  return "?";
}

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
  hold_out(card, all, &Measured::linears, HeldOut::Kind::linear, results);
  hold_out(card, all, &Measured::attention, HeldOut::Kind::attention, results);
  for (const MeasuredStep& step : all.steps) {
    const StepTime time = step_time(card, calibrated(), step.path, step.size, step.text_tokens);
    const std::string name =
        fmt::format("{} step at {} px, {} text tokens", step.path, step.size, step.text_tokens);
    results.push_back({HeldOut::Kind::step, name, step.ms, time.ms(), "ms"});
    for (const auto& [part, measured_ms, predicted_ms] :
         {std::tuple(": linears", step.linears_ms, time.linears_ms),
          std::tuple(": attention", step.attention_ms, time.attention_ms),
          std::tuple(": row passes", step.rows_ms, time.rows_ms)}) {
      if (measured_ms <= 0) continue;
      results.push_back({HeldOut::Kind::part, name + part, measured_ms, predicted_ms, "ms"});
    }
  }
  return results;
}

}  // namespace octet::predict
