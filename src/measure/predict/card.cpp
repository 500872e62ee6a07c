#include "measure/predict/card.h"

#include <algorithm>
#include <cctype>

#include "base/closest_word.h"
#include "base/error.h"
#include "base/never_destroyed.h"
#include "cards_text.h"
#include "formats/json.h"
#include "formats/text.h"
#include "octet/error.h"

namespace octet::predict {
namespace {

// Letters and digits in lower case: "NVIDIA A100-SXM4-80GB" has nvidia, a100, sxm4 and 80gb.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) {
      words.back() += static_cast<char>(std::tolower(byte));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Words that say nothing about the constants. Any other, as "ti", "pcie" or "laptop", names a
// different card.
bool is_idle_word(const std::string& word) {
  const bool is_size = word.size() > 2 && word.ends_with("gb") &&
                       std::all_of(word.begin(), word.end() - 2,
                                   [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_size || word == "nvidia" || word == "geforce" || word == "tesla" || word == "amd" ||
         word == "instinct" || word == "gpu" || word == "hbm2" || word == "hbm2e" ||
         word == "hbm3" || word == "hbm3e" || word.starts_with("sxm");
}

bool is_called(const std::vector<std::string>& device, const std::string& name) {
  std::vector<std::string> wanted = words_of(name);
  // "3090" is as good as "RTX 3090", and "4060ti" as the id "rtx4060ti".
  if (device.size() == 1 && wanted.size() == 1 && wanted[0] == "rtx" + device[0]) return true;
  const bool has_series = std::find(device.begin(), device.end(), "rtx") != device.end();
  if (!has_series && wanted.size() > 1 && wanted[0] == "rtx" && std::isdigit(wanted[1][0]) != 0) {
    wanted.erase(wanted.begin());
  }
  const auto found = std::search(device.begin(), device.end(), wanted.begin(), wanted.end());
  return found != device.end() && std::all_of(device.begin(), found, is_idle_word) &&
         std::all_of(found + static_cast<std::ptrdiff_t>(wanted.size()), device.end(),
                     is_idle_word);
}

}  // namespace

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
  const std::vector<std::string> words = words_of(device);
  for (const Card& card : cards()) {
    const auto is_its_name = [&](const std::string& name) { return is_called(words, name); };
    if (is_its_name(card.id) || std::any_of(card.names.begin(), card.names.end(), is_its_name)) {
      return &card;
    }
  }
  return nullptr;
}

}  // namespace octet::predict
