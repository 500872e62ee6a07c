#include "base/error.h"
#include "formats/boundary.h"
#include "formats/json.h"
#include "measure/predict/calibration.h"
#include "measure/predict/step.h"
#include "octet/tools/predict.h"
#include "public_figures_text.h"

namespace octet::predict {
namespace {

Path figure_path(const nlohmann::json& row, const char* name) {
  const std::string text = row.at(name);
  for (const Path path : {Path::int8, Path::bf16, Path::fp8, Path::nf4, Path::fake}) {
    if (text == name_of(path)) return path;
  }
  fail("public_figures.json: path {} is unknown", text);
}

double figure_product_us(const nlohmann::json& row, const Card& card, const char* path) {
  const Load load = row.value("cold", false) ? Load::cold : Load::steady;
  const Path kind = figure_path(row, path);
  return product_time(card, calibrated(), kind, load, row.at("m"), row.at("n"), row.at("k")).us;
}

double figure_operations(const nlohmann::json& row) {
  return 2.0 * row.at("m").get<double>() * row.at("n").get<double>() * row.at("k").get<double>();
}

double figure_step_ms(const nlohmann::json& row, const Card& card, const char* path) {
  const std::string kind = row.at(path);
  return step_time(card, calibrated(), kind, row.at("size"), row.value("text_tokens", 512)).ms();
}

// The CPU has no model but a share of its instruction's ceiling, measured at another shape.
double cpu_us(const nlohmann::json& row) {
  const nlohmann::json& cpu = cards_data().at("cpu");
  return figure_operations(row) * 1e-6 /
         (cpu.at("ceiling_tops").get<double>() * cpu.at("efficiency").get<double>());
}

double predicted_figure(const nlohmann::json& row) {
  const auto kind = row.at("kind").get<std::string>();
  if (kind == "cpu_us") return cpu_us(row);
  const Card& card = card_of(row.at("card").get<std::string>());
  if (kind == "product_us") return figure_product_us(row, card, "path");
  if (kind == "product_tops") {
    return figure_operations(row) * 1e-6 / figure_product_us(row, card, "path");
  }
  if (kind == "product_ratio") {
    return figure_product_us(row, card, "path") / figure_product_us(row, card, "over");
  }
  if (kind == "step_ms") return figure_step_ms(row, card, "path");
  if (kind == "picture_s") {
    return figure_step_ms(row, card, "path") * row.at("steps").get<double>() * 1e-3;
  }
  if (kind == "step_ratio") {
    return figure_step_ms(row, card, "path") / figure_step_ms(row, card, "over");
  }
  check(kind == "int8_ceiling", "public_figures.json: kind {} is unknown", kind);
  return card.int8_mma * card.multiprocessors * card.boost_ghz * 1e-3;
}

}  // namespace
}  // namespace octet::predict

namespace octet {

std::vector<PublicFigure> check_public_figures() try {
  std::vector<PublicFigure> figures;
  const nlohmann::json data = parse_json(kPublicFiguresText, "public_figures.json");
  for (const nlohmann::json& row : data.at("figures")) {
    PublicFigure& figure = figures.emplace_back();
    figure.what = row.at("what");
    figure.source = row.at("source");
    figure.unit = row.at("unit");
    figure.published = row.at("published");
    figure.remark = row.value("remark", "");
    figure.predicted = predict::predicted_figure(row);
    figure.error = figure.predicted / figure.published - 1;
  }
  return figures;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
