// How far apart two models are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/nested.h"
#include "report/text.h"

namespace octet {

using namespace report;

OCTET_JSON(Difference, cosine, relative_rmse, snr_db, max_abs)
OCTET_JSON(DifferenceStatistics, cosine, relative_rmse, snr_db, max_abs)

void to_json(Json& json, const Statistic& statistic) {
  const bool has_interval = std::isfinite(statistic.low);
  json = joined(
      {OCTET_FIELDS(statistic, mean, median),
       field("interval", has_interval ? Json({statistic.low, statistic.high}) : Json(nullptr)),
       OCTET_FIELDS(statistic, standard_error, count)});
}

static void to_json(Json& json, const TextDifference& text) {
  json = nullptr;
  if (text.tokens > 0) json = OCTET_FIELDS(text, tokens, mean_cosine, worst_cosine, max_abs);
}

namespace {

// Equal in every bit: latents, and so pixels.
bool is_equal(const CompareReport& report) {
  for (const DifferenceStatistics& step : report.steps) {
    if (step.max_abs.mean > 0) return false;
  }
  return report.first_velocity.max_abs.mean == 0 && report.psnr_db.count == 0;
}

}  // namespace

void to_json(Json& json, const CompareReport& report) {
  auto captions = Json::array();
  for (size_t i = 0; i < report.captions.size(); ++i) {
    captions.push_back({{"name", report.captions[i].name},
                        {"caption", report.prompts[i]},
                        {"text", report.texts[i]}});
  }
  auto images = Json::array();
  for (const ComparedImage& image : report.images) {
    images.push_back(
        joined({field("caption", report.captions[image.caption].name),
                field("seed", report.seeded ? Json(image.seed) : Json(nullptr)),
                OCTET_FIELDS(image, look_a, look_b, first_velocity, steps, psnr_db, ssim)}));
  }
  json = joined({OCTET_FIELDS(report, tokens, channels), field("equal", is_equal(report)),
                 OCTET_FIELDS(report, first_velocity, steps, psnr_db, ssim),
                 field("captions", captions), field("images", images)});
}

namespace {

Json side_json(const ModelOptions& side, const std::vector<std::string>& loras,
               const RenderReport& report) {
  return joined({OCTET_FIELDS(side, model, linears, text_encoder_linears),
                 field("dtype", side.activations), field("loras", loras), report});
}

// "± 0.02"; with several captions intervals say more.
std::string with_error(const std::string& mean, const Statistic& statistic) {
  const bool has_interval = std::isfinite(statistic.low);
  if (has_interval || !std::isfinite(statistic.standard_error)) return mean;
  return fmt::format("{} ± {:.1g}", mean, statistic.standard_error);
}

std::string mean_decibels(const Statistic& statistic, bool equal) {
  if (statistic.count == 0) return equal ? "equal" : "-";
  return with_error(fmt::format("{:.2f}", statistic.mean), statistic);
}

std::string mean_of(const Statistic& statistic, int decimals) {
  if (statistic.count == 0) return "-";
  return with_error(fmt::format("{:.{}f}", statistic.mean, decimals), statistic);
}

std::string median_of(const Statistic& statistic, int decimals) {
  return statistic.count == 0 ? "-" : fmt::format("{:.{}f}", statistic.median, decimals);
}

std::string difference_table(const CompareReport& report) {
  const bool several = report.captions.size() > 1;
  std::vector<std::string> header = {"", "cosine", "relative RMSE", "SNR dB", "max difference"};
  if (several) header.insert(header.begin() + 4, {"95 % interval", "median"});
  Table table(header, 1);
  const auto add = [&](const std::string& name, const DifferenceStatistics& row) {
    std::vector<std::string> cells = {name, mean_of(row.cosine, 6), mean_of(row.relative_rmse, 5),
                                      mean_decibels(row.snr_db, row.max_abs.mean == 0),
                                      mean_of(row.max_abs, 4)};
    if (several)
      cells.insert(cells.begin() + 4, {interval_of(row.snr_db, 2), median_of(row.snr_db, 2)});
    table.add(std::move(cells));
  };
  add("velocity of step 1", report.first_velocity);
  for (size_t i = 0; i < report.steps.size(); ++i) {
    add(fmt::format("latent after step {}", i + 1), report.steps[i]);
  }
  return table.text();
}

std::string side_text(const char* name, const ModelOptions& side, const RenderReport& report) {
  const std::string of_text =
      side.text_encoder_linears == Linears::floating
          ? ""
          : fmt::format(", of the text encoder {}", word_of(side.text_encoder_linears));
  return fmt::format("{}  {}: linears {}{}, activations {}, on {}; checkpoint {}\n", name,
                     printable(side.model), word_of(side.linears), of_text,
                     word_of(side.activations), report.device, report.checkpoint);
}

// Over the tokens of all captions; nothing for text encoders that cannot be compared.
std::string features_text(const CompareReport& report) {
  double sum = 0, worst = 1, max_abs = 0;
  int64_t tokens = 0;
  for (const TextDifference& text : report.texts) {
    if (text.tokens == 0) return "";
    tokens += text.tokens;
    sum += text.mean_cosine * static_cast<double>(text.tokens);
    worst = std::min(worst, text.worst_cosine);
    max_abs = std::max(max_abs, text.max_abs);
  }
  if (max_abs == 0) return "Text features: equal\n";
  return fmt::format("Text features: cosine {:.6f}, of the worst of {} tokens {:.6f}\n",
                     sum / static_cast<double>(tokens), tokens, worst);
}

std::string picture_text(const CompareReport& report) {
  const bool several = report.captions.size() > 1;
  const auto more = [&](const Statistic& statistic, int decimals) {
    if (!several || statistic.count == 0) return std::string();
    return fmt::format(" ({}, median {})", interval_of(statistic, decimals),
                       median_of(statistic, decimals));
  };
  return fmt::format("PSNR {}{}{}, SSIM {}{}\n", mean_decibels(report.psnr_db, /*equal=*/true),
                     report.psnr_db.count > 0 ? " dB" : "", more(report.psnr_db, 2),
                     mean_of(report.ssim, 5), more(report.ssim, 5));
}

// Pictures that say little about a model, by their number.
std::string look_text(const CompareReport& report) {
  const auto count = [&](PictureLook ComparedImage::*look) {
    return std::count_if(
        report.images.begin(), report.images.end(),
        [&](const ComparedImage& image) { return image.*look != PictureLook::ordinary; });
  };
  const auto a = count(&ComparedImage::look_a), b = count(&ComparedImage::look_b);
  if (a + b == 0) return "";
  return fmt::format("Nearly one colour, or a card with text: {} pictures of A, {} of B, of {}\n",
                     a, b, report.images.size());
}

}  // namespace

std::string to_json(const Comparison& comparison) try {
  const CompareReport& report = comparison.report;
  const CompareRequest& request = comparison.request;
  Json json = report::json_of({.model = {}, .picture = request.picture}, report.a);
  json.erase("model");  // each has its own
  if (report.captions.size() > 1) json["caption"] = nullptr;
  json["a"] = side_json(request.a, comparison.loras_a, report.a);
  json["b"] = side_json(request.b, comparison.loras_b, report.b);
  json.update(Json(report));
  json["pictures"] = comparison.pictures;
  return document("octet.compare/1", json);
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const Comparison& comparison, Detail detail) try {
  const CompareReport& report = comparison.report;
  std::string text = picture_text(report);
  if (detail != Detail::brief) {
    text = fmt::format("{}{}\n{}\n{}Pictures: {}{}", side_text("A", comparison.request.a, report.a),
                       side_text("B", comparison.request.b, report.b), difference_table(report),
                       features_text(report), text, look_text(report));
  }
  if (detail == Detail::full) text += "\n" + to_text(report.a) + "\n" + to_text(report.b);
  for (const std::string& path : comparison.pictures) text += printable(path) + "\n";
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
