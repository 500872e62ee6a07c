// octet::plan_memory: the planner of engines, for devices that are not here.
#include <algorithm>
#include <optional>
#include <string>

#include "backend/context_bytes.h"
#include "base/error.h"
#include "base/invalid_request.h"
#include "engine/device_parts.h"
#include "engine/requests.h"
#include "formats/boundary.h"
#include "measure/plan/planned_path.h"
#include "measure/predict/calibration.h"
#include "measure/predict/card.h"
#include "measure/predict/step.h"
#include "measure/predict/streamed_step.h"
#include "models/image_size.h"
#include "models/presets.h"
#include "nn/attention.h"
#include "octet/devices.h"
#include "octet/tools/plan.h"

namespace octet::measure {
namespace {

constexpr uint64_t kContextBytes = kUsualContextBytes + kKernelBytes;

struct PlannedModel {
  const models::Family& family;
  models::Model model;
  PictureSize usual_size;
};

PlannedModel open_planned(const PlanRequest& request) {
  if (request.model.model.empty()) {
    const models::Family& family = predict::measured_family();
    return {family, family.synthetic_model(/*layers=*/0, request.text_tokens), family.usual_size};
  }
  const ModelOptions options = engine::with_paths(request.model);
  const models::Family& family = models::family_of(options.model);
  const models::ModelFiles files = family.find({.model = options.model,
                                                .base = options.base,
                                                .fallback = options.fallback,
                                                .parts = options.parts,
                                                .guided = options.guided});
  return {family,
          family.open(files, {.convention = options.convention,
                              .activations = options.activations,
                              .decodes = false}),
          models::defaults_of(family, {options.model, options.base, options.fallback}).size};
}

engine::DeviceParts parts_of(PlannedModel& planned, const ModelOptions& options) {
  const DType dtype = options.activations == Activations::bf16 ? DType::bf16 : DType::f32;
  engine::DeviceParts parts{
      .model = planned.model,
      .family = planned.family,
      .networks = {},
      .branches = {},
      .networks_as = {.dtype = dtype,
                      .int8 =
                          options.linears == Linears::int8 || options.linears == Linears::automatic,
                      .scores = nn::scores_for(options.attention)},
      .text_as =
          models::RunAs{.dtype = dtype, .int8 = options.text_encoder_linears == Linears::int8},
      .once = true};
  for (size_t branch = 0; branch < planned.family.branches.size(); ++branch) {
    const size_t network = planned.family.branches[branch].network;
    if (network >= planned.model.networks.size()) continue;
    parts.branches.push_back(branch);
    parts.networks.emplace(network, planned.model.networks[network].get());
  }
  return parts;
}

std::optional<predict::Card> planned_card(const PlanRequest& request) {
  if (!request.card_file.empty()) return predict::read_card_file(request.card_file);
  if (!request.card.empty()) {
    const predict::Card* card = predict::find_card(request.card);
    return card != nullptr ? *card : predict::card_of(request.card);  // says which ones are known
  }
  for (const DeviceInfo& device : list_devices()) {
    if (!device.name.starts_with("cuda") || !device.unavailable.empty()) continue;
    const predict::Card* card =
        predict::find_card(device.description.substr(0, device.description.find(',')));
    return card != nullptr ? std::optional(*card) : std::nullopt;
  }
  return std::nullopt;
}

// Of each network that runs; none where nobody knows.
std::vector<double> predicted_passes(const predict::Card& card, const PlannedModel& planned,
                                     const PlanRequest& request, int64_t image_tokens) {
  const std::string_view path = planned_path(request.model);
  if (path.empty() || &planned.family != &predict::measured_family()) return {};
  for (size_t i = 0; i < planned.model.networks.size(); ++i) {
    const auto published = planned.family.synthetic_network(i, /*layers=*/0);
    if (planned.model.networks[i]->config_text() != published->config_text()) return {};
  }
  std::vector<double> passes;
  for (const predict::StepTime& pass :
       predict::pass_times(card, predict::calibrated(), path, image_tokens, request.text_tokens)) {
    if (passes.size() < planned.model.networks.size()) passes.push_back(pass.ms());
  }
  if (std::ranges::count(passes, 0) > 0) return {};  // the card cannot
  return passes;
}

BudgetPlan budget_plan(const std::vector<engine::PartNeed>& needs, const engine::DevicePlan& plan,
                       uint64_t budget) {
  BudgetPlan made{.memory_bytes = budget, .context_bytes = kContextBytes};
  made.plan = plan.places;
  for (const PartPlace& place : plan.places) {
    made.weight_bytes += place.device_bytes;
    made.host_bytes += place.host_bytes;
    made.file_bytes += place.file_bytes;
  }
  for (size_t part = 0; part < needs.size(); ++part) {
    if (needs[part].visits == 0) continue;
    made.layers += plan.places[part].layers;
    made.layers_here += plan.places[part].layers_on_device;
  }
  made.buffer_bytes = static_cast<uint64_t>(plan.buffers) * plan.buffer_bytes;
  made.work_bytes = plan.taken - made.weight_bytes - made.buffer_bytes;
  made.streamed_bytes = plan.streamed_bytes;
  made.read_bytes = plan.read_bytes;
  uint64_t least = plan.least;
  if (least == 0 && plan.taken + made.context_bytes > budget) least = plan.taken;  // by rules
  if (least > 0) made.least_bytes = least + made.context_bytes;
  made.fits = made.least_bytes <= budget;
  return made;
}

MemoryPlans plan_for(const PlanRequest& request) {
  constexpr int kSteps = 48;
  const ModelOptions& options = request.model;
  const std::optional<predict::Card> card = planned_card(request);
  PlannedModel planned = open_planned(request);
  const models::SizeLimits& limits = planned.model.sizes;
  MemoryPlans made{.model = options.model, .text_tokens = request.text_tokens};
  made.size = request.size.width > 0 ? request.size : planned.usual_size;
  models::check_image_size(made.size, limits);
  const models::Extent extent{
      .grid = {made.size.height / limits.token_side, made.size.width / limits.token_side},
      .text_tokens = request.text_tokens,
      .steps = kSteps};

  engine::DeviceParts parts = parts_of(planned, options);
  const std::vector<engine::PartNeed> needs = parts.needs();
  const engine::WorkBytes work = parts.work();
  parts.networks_as.rows_at_once = engine::DeviceParts::kRowsAtOnce;
  const engine::WorkBytes least_work = parts.work();
  engine::check_rules(options.keep, needs);
  std::vector<double> passes;
  if (card) {
    made.card = card->name;
    made.host_gbs = predict::host_gbs(*card);
    passes = predicted_passes(*card, planned, request, extent.grid.tokens());
    for (const double ms : passes) made.resident_ms += ms;
  }
  std::vector<uint64_t> budgets = {options.max_memory};
  if (options.max_memory == 0) {
    budgets.clear();
    for (const int gb : kPlanBudgets) budgets.push_back(static_cast<uint64_t>(gb) * 1'000'000'000);
  }
  for (const uint64_t budget : budgets) {
    const uint64_t usable = budget - std::min(budget, kContextBytes);
    const auto plan_with = [&](const engine::WorkBytes& bytes) {
      return engine::plan_residency(needs, options.keep,
                                    parts.memory(usable, /*host=*/UINT64_MAX / 2, bytes, extent));
    };
    engine::DevicePlan plan = plan_with(work);
    BudgetPlan& row = made.plans.emplace_back(budget_plan(needs, plan, budget));
    if (!row.fits) {
      plan = plan_with(least_work);
      row = budget_plan(needs, plan, budget);
      row.rows_at_once = engine::DeviceParts::kRowsAtOnce;
    }
    if (!row.fits || passes.empty() || row.read_bytes > 0) continue;
    row.step_ms =
        predict::streamed_step(predict::unit_runs(needs, plan, passes), plan.buffers, made.host_gbs)
            .ms;
  }
  return made;
}

}  // namespace

std::string_view planned_path(const ModelOptions& options) {
  const bool scores = options.attention == AttentionMode::int8;
  if (options.attention == AttentionMode::int8_full || options.activations != Activations::bf16) {
    return "";
  }
  switch (options.linears) {
    case Linears::floating: return scores ? "" : "bf16";
    case Linears::fake: return scores ? "" : "fake";
    default: return scores ? "int8_attention" : "int8";
  }
}

}  // namespace octet::measure

namespace octet {

MemoryPlans plan_memory(const PlanRequest& request) try {
  constexpr int kMostTextTokens = 8192;
  check_value(request.text_tokens >= 0 && request.text_tokens <= kMostTextTokens, "text_tokens",
              "`text_tokens` is {}, expected 0 to {}", request.text_tokens, kMostTextTokens);
  return measure::plan_for(request);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
