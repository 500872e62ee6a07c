#include "tune/shipped_plans.h"

#include <algorithm>
#include <utility>

#include "base/device_name.h"
#include "base/error.h"
#include "base/never_destroyed.h"
#include "formats/json.h"
#include "measured_plans_text.h"
#include "predicted_plans_text.h"

namespace octet::tune {
namespace {

constexpr std::string_view kShippedSchema = "octet.shipped_plans/1";
constexpr double kFarthestRows = 1.5;  // times as many, or as few

std::string list_of(const std::vector<std::string>& texts) {
  return texts.empty() ? "[]" : fmt::format("[\"{}\"]", fmt::join(texts, "\", \""));
}

// One line for a weight and a kernel, so that changes can be read.
std::string text_of_card(const ShippedCard& card) {
  std::string text = fmt::format(
      "{{\"device\": \"{}\", \"names\": {}, \"multiprocessors\": {}, \"source\": \"{}\",\n"
      " \"layout\": \"{}\", \"date\": \"{}\", \"commit\": \"{}\", \"plans\": {{",
      card.device, list_of(card.names), card.multiprocessors,
      card.is_measured ? "measured" : "predicted", card.layout, card.date, card.commit);
  const char* before_weight = "\n";
  for (const auto& [weight, by_rows] : card.kernels) {
    std::map<std::string, std::vector<int64_t>> rows;
    for (const auto& [m, kernel] : by_rows) rows[kernel].push_back(m);
    text += fmt::format("{}  \"{}\": {{", std::exchange(before_weight, ",\n"), weight);
    const char* before_kernel = "\n";
    for (const auto& [kernel, of_kernel] : rows) {
      text += fmt::format("{}   \"{}\": [{}]", std::exchange(before_kernel, ",\n"), kernel,
                          fmt::join(of_kernel, ", "));
    }
    text += "}";
  }
  return text + "}}";
}

ShippedCard card_from(const nlohmann::json& value, const std::string& what) {
  ShippedCard card;
  card.device = value.at("device");
  card.names = value.at("names").get<std::vector<std::string>>();
  card.multiprocessors = value.at("multiprocessors");
  const std::string source = value.at("source");
  check(source == "measured" || source == "predicted",
        "{}: the source of {} is {}, expected measured or predicted", what, card.device, source);
  card.is_measured = source == "measured";
  card.layout = value.at("layout");
  card.date = value.at("date");
  card.commit = value.at("commit");
  for (const auto& [weight, kernels] : value.at("plans").items()) {
    for (const auto& [kernel, rows] : kernels.items()) {
      for (const int64_t m : rows) {
        const bool is_new = card.kernels[weight].emplace(m, kernel).second;
        check(is_new && m > 0, "{}: {} has {} rows of {} twice, or too few", what, card.device, m,
              weight);
      }
    }
  }
  return card;
}

double ratio_of(int64_t a, int64_t b) {
  return static_cast<double>(std::max(a, b)) / static_cast<double>(std::min(a, b));
}

}  // namespace

bool ShippedCard::is(std::string_view device_name, int its_multiprocessors) const {
  const std::vector<std::string> words = words_of_device(device_name);
  return its_multiprocessors == multiprocessors &&
         std::ranges::any_of(names,
                             [&](const std::string& name) { return is_called(words, name); });
}

std::string shipped_weight(const GemmProblem& problem) {
  return fmt::format("{}x{}{}", problem.n, problem.k,
                     traits_of(problem.fusion).gated ? "+swiglu" : "");
}

std::string shipped_text(const std::vector<ShippedCard>& cards) {
  std::string text = fmt::format("{{\"schema\": \"{}\", \"cards\": [", kShippedSchema);
  const char* before = "\n";
  for (const ShippedCard& card : cards) {
    text += std::exchange(before, ",\n") + text_of_card(card);
  }
  return text + "]}\n";
}

std::vector<ShippedCard> shipped_from_text(std::string_view text, const std::string& what) try {
  const nlohmann::json file = parse_json(text, what);
  check(file.at("schema") == kShippedSchema, "{}: the schema is {}, expected {}", what,
        describe(file.at("schema")), kShippedSchema);
  std::vector<ShippedCard> cards;
  for (const nlohmann::json& card : file.at("cards")) cards.push_back(card_from(card, what));
  return cards;
} catch (const nlohmann::json::exception& error) {
  fail("{}: {}", what, error.what());
}

const std::vector<ShippedCard>& shipped_cards() {
  static const auto& all = never_destroyed<std::vector<ShippedCard>>([] {
    std::vector<ShippedCard> cards = shipped_from_text(kMeasuredPlansText, "measured_plans.json");
    for (ShippedCard& card : shipped_from_text(kPredictedPlansText, "predicted_plans.json")) {
      cards.push_back(std::move(card));
    }
    return cards;
  }());
  return all;
}

ShippedPlans::ShippedPlans(const std::vector<ShippedCard>& cards, std::string_view device_name,
                           int multiprocessors) {
  for (const ShippedCard& card : cards) {
    if (card.is(device_name, multiprocessors)) cards_.push_back(card);
  }
  std::ranges::stable_partition(cards_, &ShippedCard::is_measured);
}

std::optional<ShippedPlans::Found> ShippedPlans::find(const GemmProblem& problem) const {
  const std::string weight = shipped_weight(problem);
  for (const ShippedCard& card : cards_) {
    const auto known = card.kernels.find(weight);
    if (known == card.kernels.end() || problem.m <= 0) continue;
    const auto nearest = std::ranges::min_element(
        known->second, {}, [&](const auto& plan) { return ratio_of(plan.first, problem.m); });
    const auto& [m, kernel] = *nearest;
    if (ratio_of(m, problem.m) > kFarthestRows) continue;
    Found found;
    found.plan.kernel = kernel;
    found.plan.source = card.is_measured ? GemmPlan::Source::shipped : GemmPlan::Source::predicted;
    found.plan.date = card.date;
    found.is_exact = card.is_measured && m == problem.m && card.layout == problem.layout;
    return found;
  }
  return std::nullopt;
}

}  // namespace octet::tune
