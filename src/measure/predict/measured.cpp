#include "measure/predict/measured.h"

#include "base/error.h"
#include "formats/json.h"
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

}  // namespace

const Measured& measured() {
  static const Measured all =
      measured_from_json(parse_json(kMeasuredH200Text, "measured_h200.json"));
  return all;
}

const char* name_of(Path path) {
  for (const auto& [text, known] : kPathNames) {
    if (known == path) return text;
  }
  return "?";
}

}  // namespace octet::predict
