#include "report/compare_json.h"

#include <cmath>

#include "formats/boundary.h"

namespace octet {
namespace report {
namespace {

using OrderedJson = nlohmann::ordered_json;

// JSON has no infinity and no NaN.
OrderedJson finite(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson json_of(const Difference& difference) {
  return {{"cosine", difference.cosine},
          {"relative_rmse", finite(difference.relative_rmse)},
          {"snr_db", finite(difference.snr_db)},
          {"max_abs", difference.max_abs}};
}

OrderedJson json_of(const DifferenceStatistics& statistics) {
  return {{"cosine", report::json_of(statistics.cosine)},
          {"relative_rmse", report::json_of(statistics.relative_rmse)},
          {"snr_db", report::json_of(statistics.snr_db)},
          {"max_abs", report::json_of(statistics.max_abs)}};
}

template <class Each>
OrderedJson json_list(const std::vector<Each>& all) {
  auto list = OrderedJson::array();
  for (const Each& each : all) list.push_back(json_of(each));
  return list;
}

OrderedJson json_of(const ComparedImage& image, const CompareReport& report, bool seeded) {
  return {{"caption", report.captions[image.caption].name},
          {"seed", seeded ? OrderedJson(image.seed) : OrderedJson(nullptr)},
          {"look_a", word_of(image.look_a)},
          {"look_b", word_of(image.look_b)},
          {"first_velocity", json_of(image.first_velocity)},
          {"steps", json_list(image.steps)},
          {"psnr_db", finite(image.psnr_db)},
          {"ssim", finite(image.ssim)}};
}

OrderedJson json_of(const TextDifference& text) {
  if (text.tokens == 0) return nullptr;
  return {{"tokens", text.tokens},
          {"mean_cosine", text.mean_cosine},
          {"worst_cosine", text.worst_cosine},
          {"max_abs", text.max_abs}};
}

// Equal in every bit: latents, and so pixels.
bool is_equal(const CompareReport& report) {
  for (const DifferenceStatistics& step : report.steps) {
    if (step.max_abs.mean > 0) return false;
  }
  return report.first_velocity.max_abs.mean == 0 && report.psnr_db.count == 0;
}

}  // namespace

OrderedJson json_of(const Statistic& statistic) {
  const bool has_interval = std::isfinite(statistic.low);
  return {{"mean", finite(statistic.mean)},
          {"median", finite(statistic.median)},
          {"interval",
           has_interval ? OrderedJson({statistic.low, statistic.high}) : OrderedJson(nullptr)},
          {"standard_error", finite(statistic.standard_error)},
          {"count", statistic.count}};
}

OrderedJson json_of(const CompareReport& report) {
  auto captions = OrderedJson::array();
  for (size_t i = 0; i < report.captions.size(); ++i) {
    captions.push_back({{"name", report.captions[i].name},
                        {"caption", report.prompts[i]},
                        {"text", json_of(report.texts[i])}});
  }
  auto images = OrderedJson::array();
  for (const ComparedImage& image : report.images) {
    images.push_back(json_of(image, report, report.seeded));
  }
  return {{"tokens", report.tokens},
          {"channels", report.channels},
          {"equal", is_equal(report)},
          {"first_velocity", json_of(report.first_velocity)},
          {"steps", json_list(report.steps)},
          {"psnr_db", json_of(report.psnr_db)},
          {"ssim", json_of(report.ssim)},
          {"captions", captions},
          {"images", images}};
}

}  // namespace report

std::string compare_json(const CompareReport& report) try {
  return report::json_of(report).dump(-1, ' ', false,
                                      nlohmann::ordered_json::error_handler_t::replace);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
