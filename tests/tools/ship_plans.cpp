// Writes the plans that come with the program, src/tune/shipped/*.json, to the standard output:
//   ship_plans predicted DATE COMMIT             all cards, by the model in measure/predict
//   ship_plans tune DEVICE                       nothing; fills the device's plan file
//   ship_plans measured PLAN_FILE DATE COMMIT    what is shipped as measured, with one more card;
//                                                build it in, then write the predicted ones again
// PLAN_FILE: as `ship_plans tune` or `octet tune` leaves it in an OCTET_CACHE_DIR that was empty.
#include <iostream>
#include <set>

#include "backend/gemm_tuning.h"
#include "base/error.h"
#include "devices/select.h"
#include "formats/json.h"
#include "measure/predict/calibration.h"
#include "measure/predict/step.h"
#include "nn/linear_list.h"
#include "tools/tools.h"
#include "tune/plan_json.h"
#include "tune/shipped_plans.h"

namespace octet::test {
namespace {

using tune::ShippedCard;

GemmProblem problem_of(const nn::LinearSpec& linear, int64_t rows) {
  const bool gated = linear.order == RowOrder::gate_up;
  return {
      .m = rows, .n = linear.n(), .k = linear.k, .fusion = gated ? Fusion::swiglu : Fusion::none};
}

// The linears of the networks at pictures of 256 to 2048 pixels, without a text and with up to 512
// tokens of one, and those of the text tower. Fewer rows are bound by memory, where the model sees
// no difference between tiles; the backend's estimate does.
std::vector<GemmProblem> shipped_problems() {
  const models::Family& family = predict::measured_family();
  std::vector<GemmProblem> problems;
  for (const int size : {256, 512, 768, 1024, 1536, 2048}) {
    for (const int64_t text : {0, 256, 512}) {
      for (const nn::LinearSpec& linear : predict::measured_block().linears) {
        problems.push_back(problem_of(linear, models::image_tokens(family, size) + text));
      }
    }
  }
  nn::LinearList tower;
  family.synthetic_model(/*layers=*/1, /*text_tokens=*/1).text_encoder->visit_all(tower);
  for (const int64_t rows : {256, 512, 1024, 2048}) {
    for (const nn::LinearSpec& linear : tower.large()) {
      problems.push_back(problem_of(linear, rows));
    }
  }
  return problems;
}

// On Hopper the model takes tiles for the best that lose by some percent when measured, while the
// backend's estimate was made to agree with the measurements (tests/cuda/shares_test.cpp). So there
// the plans are those of a measured card with as many of the same multiprocessors, if there is one.
const ShippedCard* measured_relative(const predict::Card& card) {
  for (const ShippedCard& measured : tune::shipped_cards()) {
    const predict::Card* relative = predict::find_card(measured.device);
    if (measured.is_measured && relative != nullptr && relative != &card && relative->has_wgmma() &&
        measured.multiprocessors == card.multiprocessors) {
      return &measured;
    }
  }
  return nullptr;
}

std::vector<ShippedCard> predicted_cards(const std::string& date, const std::string& commit) {
  const std::vector<GemmProblem> problems = shipped_problems();
  std::vector<ShippedCard> shipped;
  for (const predict::Card& card : predict::cards()) {
    if (!card.not_run.empty()) continue;
    const ShippedCard* relative = card.has_wgmma() ? measured_relative(card) : nullptr;
    if (card.has_wgmma() && relative == nullptr) continue;
    ShippedCard& made = shipped.emplace_back();
    made.device = card.name;
    made.names = card.names;
    made.multiprocessors = card.multiprocessors;
    made.date = date;
    made.commit = commit;
    if (relative != nullptr) {
      made.kernels = relative->kernels;
      continue;
    }
    for (const GemmProblem& problem : problems) {
      std::string& kernel = made.kernels[tune::shipped_weight(problem)][problem.m];
      if (!kernel.empty()) continue;  // all layers of the text tower are alike
      kernel = predict::product_time(card, predict::calibrated(), predict::Path::int8,
                                     predict::Load::steady, problem.m, problem.n, problem.k)
                   .tile;
    }
  }
  return shipped;
}

// "m512 n4608 k4608 BF16+swiglu rows"
GemmProblem problem_from(const std::string& key, std::string& layout) {
  GemmProblem problem;
  char kind[32] = {}, rows[64] = {};
  check(std::sscanf(key.c_str(), "m%ld n%ld k%ld %31s %63s", &problem.m, &problem.n, &problem.k,
                    kind, rows) == 5,
        "{} is no problem of a plan file", key);
  if (std::string_view(kind).ends_with("+swiglu")) problem.fusion = Fusion::swiglu;
  check(layout.empty() || layout == rows,
        "the plan file has weights as {} and as {}, expected one made by `octet tune` alone",
        layout, rows);
  layout = rows;
  return problem;
}

ShippedCard measured_card(const std::string& path, const std::string& date,
                          const std::string& commit) {
  const nlohmann::json file = read_json_file(path);
  const nlohmann::json& header = file.at("header");
  const tune::PlanHeader its_own{header.at("device"), header.at("multiprocessors"),
                                 header.at("driver"), header.at("toolkit"), header.at("library")};
  const auto read = tune::plans_from_text(file.dump(), path, its_own);
  check(read.difference.empty(), "{}: {}", path, read.difference);
  ShippedCard card;
  card.device = its_own.device;
  card.names = {its_own.device};
  card.multiprocessors = its_own.multiprocessors;
  card.is_measured = true;
  card.date = date;
  card.commit = commit;
  for (const auto& [key, plan] : read.plans) {
    if (plan.reference_us.empty()) continue;  // measured between the steps of a picture
    const GemmProblem problem = problem_from(key, card.layout);
    card.kernels[tune::shipped_weight(problem)].emplace(problem.m, plan.kernel);
  }
  check(!card.kernels.empty(), "{}: has no plan of `octet tune`", path);
  return card;
}

void tune_shipped(const std::string& device) {
  const auto backend = select_backend({.device = device, .tune = Tuning::missing});
  for (const GemmProblem& problem : shipped_problems()) {
    const GemmPlan plan = backend->tuning().plan_gemm(problem);
    check(plan.us > 0, "{} was not measured on {}", problem.to_string(), backend->description());
    std::cerr << fmt::format("{}: {}, {:.1f} us\n", problem.to_string(), plan.kernel, plan.us);
  }
  std::cerr << backend->tuning().plan_file() << "\n";
}

}  // namespace

void ship_plans(const Words& words) {
  if (words.size() == 2 && words[0] == "tune") return tune_shipped(words[1]);
  std::vector<ShippedCard> cards;
  if (words.size() == 3 && words[0] == "predicted") {
    cards = predicted_cards(words[1], words[2]);
  } else {
    check(words.size() == 4 && words[0] == "measured",
          "usage: ship_plans predicted DATE COMMIT | tune DEVICE | measured PLAN_FILE DATE COMMIT");
    const ShippedCard added = measured_card(words[1], words[2], words[3]);
    for (const ShippedCard& card : tune::shipped_cards()) {
      if (card.is_measured && card.device != added.device) cards.push_back(card);
    }
    cards.push_back(added);
  }
  std::cout << tune::shipped_text(cards);
}

}  // namespace octet::test
