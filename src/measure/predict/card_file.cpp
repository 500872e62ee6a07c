#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"
#include "measure/predict/card.h"

namespace octet::predict {
namespace {

struct CardField {
  const char* name;
  double least, most;
  bool is_required;
};

constexpr double kMostRate = 65'536;

// Units as in cards.json.
constexpr CardField kCardFields[] = {
    {"multiprocessors", 1, 1024, true},
    {"boost_mhz", 100, 10'000, true},
    {"int8", 0, kMostRate, true},
    {"bf16", 1, kMostRate, true},
    {"fp8", 0, kMostRate, true},
    {"int8_mma", 0, kMostRate, false},
    {"bf16_mma", 1, kMostRate, false},
    {"memory_gbs", 1, 100'000, true},
    {"memory_gib", 1, 10'000, true},
    {"pcie_gbs", 1, 1000, false},
    {"l2_mb", 0.1, 10'000, true},
    {"l2_bytes_per_clock", 1, 1'000'000, false},
    {"shared_kb", 16, 1024, false},
    {"shared_block_kb", 16, 1024, false},
    {"watts", 1, 10'000, true},
    {"energy", 0.01, 100, false},
    {"memory_pj", 0.1, 1000, false},
};

std::string text_in(const nlohmann::json& file, const char* name, const std::string& path) {
  const auto found = file.find(name);
  check(found != file.end() && found->is_string() && !found->get<std::string>().empty(),
        "{}: \"{}\" is {}, expected a text", path, name,
        found == file.end() ? "missing" : describe(*found));
  return found->get<std::string>();
}

// `otherwise` where a field that may be left out is.
double number_in(const nlohmann::json& file, const std::string& path, std::string_view name,
                 double otherwise = 0) {
  const CardField& field = *std::find_if(std::begin(kCardFields), std::end(kCardFields),
                                         [&](const CardField& each) { return each.name == name; });
  const auto found = file.find(field.name);
  if (found == file.end()) {
    check(!field.is_required, "{}: \"{}\" is missing, expected a number from {} to {}", path,
          field.name, field.least, field.most);
    return otherwise;
  }
  const double value = found->is_number() ? found->get<double>() : -1;
  // No rate, or one that a card could have.
  const bool is_rate = field.most == kMostRate;
  check(value >= field.least && value <= field.most && !(is_rate && value > 0 && value < 1),
        "{}: \"{}\" is {}, expected a number from {} to {}{}", path, field.name, describe(*found),
        field.least, field.most, is_rate && field.least == 0 ? ", and none between 0 and 1" : "");
  return value;
}

void check_names(const nlohmann::json& file, const std::string& path) {
  constexpr std::string_view kTexts[] = {"schema", "id", "name", "compute", "about"};
  for (const auto& [name, value] : file.items()) {
    const bool is_known =
        std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts) ||
        std::any_of(std::begin(kCardFields), std::end(kCardFields),
                    [&, &name = name](const CardField& each) { return each.name == name; });
    check(is_known, "{}: {} is no constant of a card; docs/deployment-map.md lists them", path,
          in_quotes(name));
  }
}

// "8.6"
void read_compute(const nlohmann::json& file, const std::string& path, Card& card) {
  const std::string text = text_in(file, "compute", path);
  const char* end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, card.major);
  const bool has_dot = error == std::errc() && dot != end && *dot == '.';
  const char* stop = has_dot ? std::from_chars(dot + 1, end, card.minor).ptr : text.data();
  check(has_dot && stop == end && stop != dot + 1 && card.major >= 0 && card.minor >= 0,
        "{}: \"compute\" is {}, expected a compute capability such as \"8.6\"", path,
        in_quotes(text));
}

}  // namespace

Card read_card_file(const std::string& path) {
  constexpr int kFirstMajor = 8;  // Ampere
  constexpr size_t kLongestId = 64;
  const nlohmann::json file = read_json_file(path);
  check(file.is_object(), "{}: is {}, expected an object with a card's constants", path,
        describe(file));
  check_names(file, path);
  const auto number = [&](const char* name, double otherwise = 0) {
    return number_in(file, path, name, otherwise);
  };
  Card card;
  card.id = text_in(file, "id", path);
  check(card.id.size() <= kLongestId, "{}: \"id\" is {} bytes long, expected a short name", path,
        card.id.size());
  card.name = file.contains("name") ? text_in(file, "name", path) : card.id;
  read_compute(file, path, card);
  card.multiprocessors = static_cast<int>(number("multiprocessors"));
  card.boost_ghz = number("boost_mhz") * 1e-3;
  card.int8 = number("int8");
  card.bf16 = number("bf16");
  card.fp8 = number("fp8");
  card.int8_mma = number("int8_mma", card.int8);
  card.bf16_mma = number("bf16_mma", card.bf16);
  card.memory_gbs = number("memory_gbs");
  card.memory_gib = number("memory_gib");
  card.pcie_gbs = number("pcie_gbs", 32);
  card.l2_bytes = number("l2_mb") * 1e6;
  card.l2_bytes_per_clock = number("l2_bytes_per_clock", 24.0 * card.multiprocessors);
  card.shared_bytes = static_cast<int>(number("shared_kb", 100)) * 1024;
  card.shared_block_bytes = static_cast<int>(number("shared_block_kb", 99)) * 1024;
  card.watts = number("watts");
  card.energy = number("energy", card.major == kFirstMajor && card.minor < 9 ? 2 : 1);
  card.memory_pj = number("memory_pj", 60);
  for (const CardField& field : kCardFields) {
    if (!file.contains(field.name)) card.estimates.emplace_back(field.name);
  }
  if (card.major < kFirstMajor) {
    card.not_run = "Octet's kernels need compute capability 8.0";
    card.int8 = card.int8_mma = 0;
  } else if (card.int8 == 0 || card.int8_mma == 0) {
    card.not_run = "it has no INT8 by its file";
    card.int8 = card.int8_mma = 0;
  }
  return card;
}

}  // namespace octet::predict
