#include "octet/tools/predict.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/boundary.h"
#include "measure/predict/calibration.h"
#include "measure/predict/step.h"
#include "measure/predict/streamed_step.h"
#include "octet/tools/map.h"

namespace octet {
namespace predict {
namespace {

// Those that a user could take instead; 0: the card cannot.
std::string fastest(double int8, double bf16, double fp8) {
  const bool beats_int8 = int8 <= 0 || bf16 < int8;
  if (fp8 > 0 && fp8 < bf16 && (int8 <= 0 || fp8 < int8)) return "fp8";
  return beats_int8 ? "bf16" : "int8";
}

PredictedLinear predicted_linear(const Card& card, const GemmShape& shape, const std::string& layer,
                                 int size) {
  const Coefficients& c = calibrated();
  const auto [m, n, k, gate_up] = shape;
  const auto whole = [&](Path path) {
    return linear_time(card, c, path, Load::steady, m, n, k).us;
  };
  PredictedLinear row;
  row.shape = {m, n, k, gate_up};
  row.layer = layer;
  row.size = size;
  row.int8_us = whole(Path::int8);
  row.bf16_us = whole(Path::bf16);
  row.fp8_us = whole(Path::fp8);
  row.nf4_us = whole(Path::nf4);
  row.fake_us = whole(Path::fake);
  const double operations = 2e-6 * double(m) * double(n) * double(k);
  const LinearTime int8 = product_time(card, c, Path::int8, Load::steady, m, n, k);
  const LinearTime bf16 = product_time(card, c, Path::bf16, Load::steady, m, n, k);
  row.int8_tops = int8.us > 0 ? operations / int8.us : 0;
  row.bf16_tops = operations / bf16.us;
  row.int8_ghz = int8.clock_ghz;
  row.bf16_ghz = bf16.clock_ghz;
  row.tile = int8.tile;
  row.best = fastest(row.int8_us, row.bf16_us, row.fp8_us);
  return row;
}

PredictedStep predicted_step(const Card& card, int size, int text_tokens) {
  const auto time = [&](const char* path) {
    return step_time(card, calibrated(), path, size, text_tokens);
  };
  PredictedStep row;
  row.size = size;
  const StepTime int8 = time("int8");
  row.int8_ms = int8.ms();
  row.linears_ms = int8.linears_ms;
  row.attention_ms = int8.attention_ms;
  row.rows_ms = int8.rows_ms;
  row.int8_attention_ms = time("int8_attention").ms();
  row.bf16_ms = time("bf16").ms();
  row.fp8_ms = time("fp8").ms();
  row.nf4_ms = time("nf4").ms();
  row.fake_ms = time("fake").ms();
  row.best = fastest(row.int8_ms, row.bf16_ms, row.fp8_ms);
  return row;
}

PredictedPicture predicted_picture(const PredictedStep& step, int steps) {
  const double s = steps * 1e-3;
  return {step.size,       steps,           s * step.int8_ms, s * step.bf16_ms,
          s * step.fp8_ms, s * step.nf4_ms, s * step.fake_ms};
}

std::vector<int> fitting_cards(double bytes) {
  std::vector<int> sizes;
  for (const int gb : kMapCards) {
    if (bytes <= gb * 1e9 - kMapReserve) sizes.push_back(gb);
  }
  return sizes;
}

CardPrediction prediction_of(const Card& card, const PredictRequest& request) {
  CardPrediction result;
  result.card = card.id;
  result.name = card.name;
  result.memory_gib = card.memory_gib;
  result.host_gbs = host_gbs(card);
  if (card.not_run.empty()) result.kernels = card.has_wgmma() ? "wgmma" : "mma.sync";
  result.estimates = card.estimates;
  result.not_run = card.not_run;
  result.is_measured = &card == &card_of(measured().card);
  for (const GemmShape& shape : request.shapes) {
    result.linears.push_back(predicted_linear(card, shape, "", 0));
  }
  for (const int size : request.sizes) {
    const int64_t tokens = models::image_tokens(measured_family(), size);
    for (const nn::LinearSpec& linear : measured_block().linears) {
      result.linears.push_back(
          predicted_linear(card, models::shape_of(linear, tokens), linear.layer, size));
    }
    result.steps.push_back(predicted_step(card, size, request.text_tokens));
    for (const int steps : kMapPictureSteps) {
      result.pictures.push_back(predicted_picture(result.steps.back(), steps));
    }
  }
  return result;
}

void check_predicted_sizes(const std::vector<int>& sizes) {
  const models::SizeLimits& limits = measured_family().sizes;
  for (const int size : sizes) {
    check(size >= limits.smallest && size <= limits.largest && size % limits.token_side == 0,
          "predict: the size is {}, expected a multiple of {} from {} to {}", size,
          limits.token_side, limits.smallest, limits.largest);
  }
}

}  // namespace
}  // namespace predict

std::vector<std::string> known_cards() try {
  std::vector<std::string> ids;
  for (const predict::Card& card : predict::cards()) ids.push_back(card.id);
  return ids;
} catch (...) {
  rethrow_as_error();
}

std::vector<CardPrediction> predict_cards(const PredictRequest& request) try {
  constexpr int kMostTextTokens = 8192;
  predict::check_predicted_sizes(request.sizes);
  check(request.text_tokens >= 0 && request.text_tokens <= kMostTextTokens,
        "predict: there are {} text tokens, expected 0 to {}", request.text_tokens,
        kMostTextTokens);
  std::vector<const predict::Card*> cards;
  for (const std::string& name : request.cards) {
    const predict::Card* card = predict::find_card(name);
    if (card == nullptr) card = &predict::card_of(name);  // says which ones are known
    if (std::find(cards.begin(), cards.end(), card) == cards.end()) cards.push_back(card);
  }
  std::vector<predict::Card> described;
  for (const std::string& file : request.card_files) {
    described.push_back(predict::read_card_file(file));
  }
  if (cards.empty() && described.empty()) {
    for (const predict::Card& card : predict::cards()) cards.push_back(&card);
  }
  for (const predict::Card& card : described) cards.push_back(&card);
  std::vector<CardPrediction> results;
  for (const predict::Card* card : cards) results.push_back(predict::prediction_of(*card, request));
  return results;
} catch (...) {
  rethrow_as_error();
}

std::vector<PredictedMemory> predict_memory(const std::vector<int>& sizes) try {
  predict::check_predicted_sizes(sizes);
  std::vector<PredictedMemory> rows;
  for (const int size : sizes) {
    for (const char* path : {"int8", "bf16", "fp8", "nf4", "fake"}) {
      PredictedMemory& row = rows.emplace_back();
      row.path = path;
      row.size = size;
      row.both_bytes = predict::memory_bytes(path, size, true);
      row.one_bytes = predict::memory_bytes(path, size, false);
      row.fits_both = predict::fitting_cards(row.both_bytes);
      row.fits_one = predict::fitting_cards(row.one_bytes);
    }
  }
  return rows;
} catch (...) {
  rethrow_as_error();
}

LeaveOneOut leave_one_out() try {
  LeaveOneOut result;
  double sum = 0;
  int linears = 0;
  for (const predict::HeldOut& row : predict::hold_out_each()) {
    result.figures.push_back({row.what, row.unit, row.measured, row.predicted, row.error()});
    const double error = std::abs(row.error());
    if (row.kind == predict::HeldOut::Kind::linear) {
      result.worst_linear = std::max(result.worst_linear, error);
      sum += error;
      ++linears;
    }
    if (row.kind == predict::HeldOut::Kind::step)
      result.worst_step = std::max(result.worst_step, error);
  }
  if (linears > 0) result.mean_linear = sum / linears;
  return result;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
