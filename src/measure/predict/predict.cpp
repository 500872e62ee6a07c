#include "octet/tools/predict.h"

#include <algorithm>

#include "base/error.h"
#include "formats/boundary.h"
#include "measure/predict/prediction.h"
#include "measure/predict/public_figures.h"
#include "measure/predict/step.h"

namespace octet {
namespace {

void check_predicted_sizes(const std::vector<int>& sizes) {
  const models::SizeLimits& limits = predict::measured_family().sizes;
  for (const int size : sizes) {
    check(size >= limits.smallest && size <= limits.largest && size % limits.token_side == 0,
          "predict: the size is {}, expected a multiple of {} from {} to {}", size,
          limits.token_side, limits.smallest, limits.largest);
  }
}

}  // namespace

std::vector<std::string> known_cards() try {
  std::vector<std::string> ids;
  for (const predict::Card& card : predict::cards()) ids.push_back(card.id);
  return ids;
} catch (...) {
  rethrow_as_error();
}

std::vector<CardPrediction> predict_cards(const PredictRequest& request) try {
  constexpr int kMostTextTokens = 8192;
  check_predicted_sizes(request.sizes);
  check(request.text_tokens >= 0 && request.text_tokens <= kMostTextTokens,
        "predict: there are {} text tokens, expected 0 to {}", request.text_tokens,
        kMostTextTokens);
  std::vector<const predict::Card*> cards;
  for (const std::string& name : request.cards) {
    const predict::Card* card = predict::find_card(name);
    if (card == nullptr) card = &predict::card_of(name);  // says which ones are known
    if (std::find(cards.begin(), cards.end(), card) == cards.end()) cards.push_back(card);
  }
  if (cards.empty()) {
    for (const predict::Card& card : predict::cards()) cards.push_back(&card);
  }
  std::vector<CardPrediction> results;
  for (const predict::Card* card : cards) {
    results.push_back(predict::prediction_of(*card, request.sizes, request.text_tokens));
  }
  return results;
} catch (...) {
  rethrow_as_error();
}

std::vector<PredictedMemory> predict_memory(const std::vector<int>& sizes) try {
  check_predicted_sizes(sizes);
  return predict::memory_of(sizes);
} catch (...) {
  rethrow_as_error();
}

std::vector<PublicFigure> check_public_figures() try {
  return predict::public_figures();
} catch (...) {
  rethrow_as_error();
}

LeaveOneOut leave_one_out() try { return predict::held_out_summary(); } catch (...) {
  rethrow_as_error();
}

}  // namespace octet
