// What cards that are not here would do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <utility>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "octet/version.h"
#include "report/json.h"
#include "report/predict_advice.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

constexpr const char* kPredicted =
    "PREDICTED by an analytic model fitted to one measured card, not measured";

// A figure of the public headers by the name of its way.
template <class Entry>
struct Figure {
  const char* way;
  double Entry::*value;
};

constexpr Figure<PredictedLinear> kLinearUs[] = {{"int8", &PredictedLinear::int8_us},
                                                 {"bf16", &PredictedLinear::bf16_us},
                                                 {"fp8", &PredictedLinear::fp8_us},
                                                 {"nf4", &PredictedLinear::nf4_us},
                                                 {"fake", &PredictedLinear::fake_us}};
constexpr Figure<PredictedStep> kStepMs[] = {
    {"int8", &PredictedStep::int8_ms}, {"int8_attention", &PredictedStep::int8_attention_ms},
    {"bf16", &PredictedStep::bf16_ms}, {"fp8", &PredictedStep::fp8_ms},
    {"nf4", &PredictedStep::nf4_ms},   {"fake", &PredictedStep::fake_ms}};
constexpr Figure<PredictedPicture> kPictureS[] = {{"int8", &PredictedPicture::int8_s},
                                                  {"bf16", &PredictedPicture::bf16_s},
                                                  {"fp8", &PredictedPicture::fp8_s},
                                                  {"nf4", &PredictedPicture::nf4_s},
                                                  {"fake", &PredictedPicture::fake_s}};

template <class Entry, size_t count>
Json by_way(const Entry& entry, const Figure<Entry> (&figures)[count]) {
  Json json = Json::object();
  for (const auto& [way, figure] : figures) json[way] = known(entry.*figure);
  return json;
}

}  // namespace

static void to_json(Json& json, const PredictedLinear& linear) {
  json = joined({OCTET_KNOWN_FIELDS(linear, layer), field("pixels", known(linear.size)),
                 OCTET_FIELDS(linear.shape, m, n, k), field("us", by_way(linear, kLinearUs)),
                 OCTET_KNOWN_FIELDS(linear, int8_tops, bf16_tops, int8_ghz, bf16_ghz, tile),
                 OCTET_FIELDS(linear, best)});
}

static void to_json(Json& json, const PredictedStep& step) {
  json = joined({field("pixels", step.size), field("ms", by_way(step, kStepMs)),
                 OCTET_FIELDS(step, linears_ms, attention_ms, rows_ms, best)});
}

static void to_json(Json& json, const PredictedPicture& picture) {
  json = {
      {"pixels", picture.size}, {"steps", picture.steps}, {"seconds", by_way(picture, kPictureS)}};
}

static void to_json(Json& json, const CardPrediction& card) {
  json = joined({OCTET_FIELDS(card, card, name, memory_gib, host_gbs),
                 OCTET_KNOWN_FIELDS(card, kernels, not_run), field("fitted_to", card.is_measured),
                 OCTET_FIELDS(card, estimates, linears, steps, pictures)});
}

static void to_json(Json& json, const PredictedMemory& memory) {
  json = joined({field("way", memory.path), field("pixels", memory.size),
                 OCTET_FIELDS(memory, both_bytes, one_bytes),
                 field("fits_both_gb", memory.fits_both), field("fits_one_gb", memory.fits_one)});
}

static void to_json(Json& json, const PublicFigure& figure) {
  json = joined({OCTET_FIELDS(figure, what, source, unit, published, predicted, error),
                 OCTET_KNOWN_FIELDS(figure, remark)});
}

OCTET_JSON(HeldOutFigure, what, unit, measured, predicted, error)

namespace {

std::string linear_text(const std::vector<CardPrediction>& cards) {
  Table table({"card", "linear", "best", "tile", "m", "n", "k", "INT8 TOPS", "bf16 TOPS", "int8 us",
               "bf16 us", "fp8 us", "nf4 us", "fake us"},
              4);
  for (const CardPrediction& card : cards) {
    for (const PredictedLinear& linear : card.linears) {
      std::vector<std::string> cells = {card.card,
                                        linear.layer.empty() ? "-" : linear.layer,
                                        linear.best,
                                        linear.tile.empty() ? "-" : linear.tile,
                                        std::to_string(linear.shape.m),
                                        std::to_string(linear.shape.n),
                                        std::to_string(linear.shape.k),
                                        short_number(linear.int8_tops),
                                        short_number(linear.bf16_tops)};
      for (const auto& [way, us] : kLinearUs) cells.push_back(short_number(linear.*us));
      table.add(std::move(cells));
    }
  }
  return table.text();
}

std::string step_text(const std::vector<CardPrediction>& cards) {
  Table table({"card", "size", "best", "int8 ms", "with int8 scores", "bf16 ms", "fp8 ms", "nf4 ms",
               "fake ms", "int8, 20 steps s", "bf16 / int8"},
              3);
  for (const CardPrediction& card : cards) {
    for (const PredictedStep& step : card.steps) {
      std::vector<std::string> cells = {card.card, fmt::format("{} px", step.size), step.best};
      for (const auto& [way, ms] : kStepMs) cells.push_back(short_number(step.*ms));
      cells.push_back(short_number(step.int8_ms * 20e-3));
      cells.push_back(step.int8_ms > 0 ? fmt::format("{:.2f}x", step.bf16_ms / step.int8_ms) : "-");
      table.add(std::move(cells));
    }
  }
  return table.text();
}

// Constants of cards that nobody has published.
std::string estimate_text(const std::vector<CardPrediction>& cards) {
  std::string text;
  for (const CardPrediction& card : cards) {
    if (card.estimates.empty()) continue;
    text += fmt::format("{}: estimated constants: {}\n", printable(card.card),
                        fmt::join(card.estimates, ", "));
  }
  return text;
}

std::string memory_text(const std::vector<PredictedMemory>& memory) {
  Table table({"linears", "size", "both networks", "fits on", "one", "fits on"}, 2);
  const auto cards = [](const std::vector<int>& sizes) {
    return sizes.empty() ? "-" : fmt::format("{} GB", fmt::join(sizes, " "));
  };
  for (const PredictedMemory& each : memory) {
    table.add({each.path, fmt::format("{} px", each.size),
               human_bytes(static_cast<uint64_t>(each.both_bytes)), cards(each.fits_both),
               human_bytes(static_cast<uint64_t>(each.one_bytes)), cards(each.fits_one)});
  }
  return table.text();
}

// Predicted figures beside those that are known.
template <class Known>
std::string figure_table(const char* title, const char* known_as, const std::vector<Known>& figures,
                         double Known::*value) {
  Table table({title, "unit", known_as, "predicted", "error"}, 2);
  for (const Known& figure : figures) {
    table.add({figure.what, figure.unit, short_number(figure.*value),
               short_number(figure.predicted), fmt::format("{:+.1f} %", 100 * figure.error)});
  }
  return table.text();
}

std::string held_out_text(const LeaveOneOut& check) {
  return fmt::format(
      "\n{}\nWorst: linears {:.1f} %, steps {:.1f} %; mean of linears {:.1f} %.\n",
      figure_table("measured, held out", "measured", check.figures, &HeldOutFigure::measured),
      100 * check.worst_linear, 100 * check.worst_step, 100 * check.mean_linear);
}

}  // namespace

std::string to_json(const Prediction& prediction) try {
  return document(
      "octet.map.predict/1",
      joined(
          {field("version", version()), field("commit", commit()), field("predicted", true),
           OCTET_FIELDS(prediction, text_tokens, cards, memory),
           field("public_figures", prediction.figures),
           field("held_out", prediction.check ? Json(prediction.check->figures) : Json::array())}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const Prediction& prediction, Detail detail) try {
  const std::vector<CardPrediction>& cards = prediction.cards;
  std::string text = advice_text(cards);
  if (detail == Detail::brief) return text + card_lines(prediction) + not_run_text(cards);
  text += fmt::format("{}\n{}{}\n", kPredicted, not_run_text(cards), bus_text(prediction));
  const bool has_steps = !cards.empty() && !cards.front().steps.empty();
  if (has_steps) {
    text += fmt::format(
        "{}\nA step is one pass of each network, {} text tokens, with both on the card. Linears "
        "have "
        "the rows of the unconditional pass:\n\n",
        step_text(cards), prediction.text_tokens);
  }
  text += linear_text(cards) + "\n" + estimate_text(cards);
  if (!prediction.memory.empty()) text += "\n" + memory_text(prediction.memory);
  if (!prediction.figures.empty()) {
    text += "\n" + figure_table("published figure", "published", prediction.figures,
                                &PublicFigure::published);
  }
  return prediction.check ? text + held_out_text(*prediction.check) : text;
} catch (...) {
  rethrow_as_error();
}

HeatMap heat_map_of(const std::vector<CardPrediction>& cards) try {
  HeatMap map;
  map.title = "A denoising step: speed relative to bf16";
  map.subtitle = kPredicted;
  for (const CardPrediction& card : cards) {
    HeatMap::Row& row = map.rows.emplace_back();
    row.name = card.card;
    for (const PredictedStep& step : card.steps) {
      const bool is_first = &card == &cards.front();
      if (is_first) map.groups.push_back({fmt::format("{} px", step.size), {}});
      for (const auto& [way, ms] : kStepMs) {
        const std::string name = way;
        if (name == "bf16" || name == "int8_attention") continue;
        if (is_first) map.groups.back().columns.push_back(name);
        HeatCell& cell = row.cells.emplace_back();
        if (step.*ms <= 0) continue;
        cell.ratio = step.bf16_ms / (step.*ms);
        cell.note =
            fmt::format("{}, predicted: {:.0f} ms, bf16 {:.0f} ms", name, step.*ms, step.bf16_ms);
        cell.best = step.best == name;
      }
    }
  }
  return map;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
