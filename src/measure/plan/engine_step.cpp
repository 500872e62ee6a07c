// octet::predicted_step_ms: of an engine, whose plan is known by what it says of itself.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "formats/boundary.h"
#include "measure/plan/planned_path.h"
#include "measure/predict/calibration.h"
#include "measure/predict/step.h"
#include "measure/predict/streamed_step.h"
#include "models/footprint.h"
#include "octet/tools/plan.h"

namespace octet::measure {
namespace {

// Whether a network has the layers and, but for the padding of a layout, the bytes of the published
// one.
bool is_published(const PartPlace& place, size_t network, std::string_view path) {
  constexpr double kPadding = 0.02;
  const auto published = predict::measured_family().synthetic_network(network, /*layers=*/0);
  const auto bytes = static_cast<double>(models::weight_bytes_in(
      *published, path == "int8_attention" ? std::string_view("int8") : path));
  return place.layers == predict::measured_block().layers &&
         std::abs(static_cast<double>(place.bytes) - bytes) <= kPadding * bytes;
}

// Layers that leave are spread evenly, as plans have them.
double step_ms(const EngineInfo& info, const predict::Card& card, std::string_view path,
               PictureSize size) {
  constexpr int kTextTokens = 512;
  const models::Family& family = predict::measured_family();
  const int side = family.sizes.token_side;
  const std::vector<predict::StepTime> passes =
      predict::pass_times(card, predict::calibrated(), path,
                          int64_t{size.height / side} * (size.width / side), kTextTokens);
  std::vector<predict::UnitRun> units;
  int away = 0;
  for (size_t network = 0; network < info.networks.size(); ++network) {
    const auto place =
        std::ranges::find(info.plan, family.networks[network].part, &PartPlace::part);
    if (place == info.plan.end() || !place->device.empty()) return 0;
    if (!is_published(*place, network, path)) return 0;
    const int leaves = place->layers - place->layers_on_device;
    away += leaves;
    for (int layer = 0; layer < place->layers; ++layer) {
      const bool leaves_here =
          (layer + 1) * leaves / place->layers > layer * leaves / place->layers;
      units.push_back({passes[network].ms() / place->layers, leaves_here ? 1u : 0u});
    }
  }
  if (away == 0 || info.streamed_bytes == 0) {
    double ms = 0;
    for (const predict::UnitRun& unit : units) ms += unit.ms;
    return ms;
  }
  const uint64_t of_layer = info.streamed_bytes / static_cast<uint64_t>(away);
  for (predict::UnitRun& unit : units) unit.streamed_bytes *= of_layer;
  const auto buffers = static_cast<int>((info.buffer_bytes + of_layer / 2) / of_layer);
  return predict::streamed_step(units, std::max(buffers, 1), predict::host_gbs(card)).ms;
}

}  // namespace
}  // namespace octet::measure

namespace octet {

double predicted_step_ms(const EngineInfo& info, const ModelOptions& options,
                         PictureSize size) try {
  const std::string_view path = measure::planned_path(options);
  const predict::Card* card = predict::find_card(info.device.substr(0, info.device.find(',')));
  const bool is_known = card != nullptr && card->not_run.empty() && !path.empty() &&
                        info.family == predict::measured_family().name && info.read_bytes == 0;
  return is_known ? measure::step_ms(info, *card, path, size) : 0;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
