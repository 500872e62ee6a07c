#include "measure/predict/card.h"

#include <algorithm>

#include "base/closest_word.h"
#include "base/device_name.h"
#include "base/error.h"
#include "base/never_destroyed.h"
#include "cards_text.h"
#include "formats/json.h"
#include "formats/text.h"
#include "octet/error.h"

namespace octet::predict {

// A constant is a pair of its value and where that comes from.
static double constant_of(const nlohmann::json& card, const char* name) {
  return card.at(name).at(0);
}

void from_json(const nlohmann::json& json, Card& card) {
  card.id = json.at("id");
  card.name = json.at("name");
  card.names = json.at("names");
  card.not_run = json.value("not_run", "");
  const std::string compute = json.at("compute");
  const size_t dot = compute.find('.');
  card.major = std::stoi(compute.substr(0, dot));
  card.minor = std::stoi(compute.substr(dot + 1));
  card.multiprocessors = static_cast<int>(constant_of(json, "multiprocessors"));
  card.boost_ghz = constant_of(json, "boost_mhz") * 1e-3;
  card.int8 = constant_of(json, "int8");
  card.bf16 = constant_of(json, "bf16");
  card.fp8 = constant_of(json, "fp8");
  card.int8_mma = constant_of(json, "int8_mma");
  card.bf16_mma = constant_of(json, "bf16_mma");
  card.memory_gbs = constant_of(json, "memory_gbs");
  card.memory_gib = constant_of(json, "memory_gib");
  card.pcie_gbs = constant_of(json, "pcie_gbs");
  card.l2_bytes = constant_of(json, "l2_mb") * 1e6;
  card.l2_bytes_per_clock = constant_of(json, "l2_bytes_per_clock");
  card.shared_bytes = static_cast<int>(constant_of(json, "shared_kb")) * 1024;
  card.shared_block_bytes = static_cast<int>(constant_of(json, "shared_block_kb")) * 1024;
  card.watts = constant_of(json, "watts");
  card.energy = constant_of(json, "energy");
  card.memory_pj = constant_of(json, "memory_pj");
  const nlohmann::json& sources = cards_data().at("sources");
  for (const auto& [name, value] : json.items()) {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number()) continue;
    const auto source = sources.at(value[1].get<std::string>()).get<std::string>();
    if (source.starts_with("estimate")) card.estimates.push_back(name);
  }
}

const nlohmann::json& cards_data() {
  static const auto& data = never_destroyed<nlohmann::json>(parse_json(kCardsText, "cards.json"));
  return data;
}

std::span<const Card> cards() {
  static const auto& all =
      never_destroyed<std::vector<Card>>(cards_data().at("cards").get<std::vector<Card>>());
  return all;
}

const Card& card_of(std::string_view id) {
  std::vector<std::string_view> ids;
  for (const Card& card : cards()) {
    if (card.id == id) return card;
    ids.push_back(card.id);
  }
  const auto close = closest_word(id, ids);
  std::sort(ids.begin(), ids.end());
  throw InvalidRequest(
      "cards",
      sentence("`cards`: there is no card {}{}; expected one of {}", in_quotes(id),
               close ? fmt::format(", perhaps {} was meant", *close) : "", fmt::join(ids, ", ")));
}

const Card* find_card(std::string_view device) {
  constexpr size_t kLongestName = 200;  // no driver's is as long
  if (device.size() > kLongestName) return nullptr;
  const std::vector<std::string> words = words_of_device(device);
  for (const Card& card : cards()) {
    const auto is_its_name = [&](const std::string& name) { return is_called(words, name); };
    if (is_its_name(card.id) || std::any_of(card.names.begin(), card.names.end(), is_its_name)) {
      return &card;
    }
  }
  return nullptr;
}

}  // namespace octet::predict
