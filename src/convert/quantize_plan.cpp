#include "convert/quantize_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/invalid_request.h"
#include "formats/text.h"
#include "quant/recipe.h"
#include "weights/dialects/output_dialect.h"

namespace octet::convert {
namespace {

constexpr int64_t kSyntheticRows = 64;

const quant::LinearInputs& find_inputs(const NetworkPlan& plan, const QuantizeOptions& options,
                                       const std::string& linear, int64_t k) {
  const std::string name = plan.prefix() + linear;
  const auto found = options.statistics.find(name);
  check(found != options.statistics.end() && found->second.k == k,
        "{}: has no activations of {} channels for {}; it was made with another model, calibrate "
        "again",
        options.statistics_name, k, in_quotes(name));
  return found->second;
}

}  // namespace

NetworkPlan::NetworkPlan(const models::Family& family, const NetworkFiles& files)
    : name_(family.networks[files.network].name),
      network_(family.open_network(files.network, files.files)),
      groups_(network_->smooth_groups()) {
  network_->visit_stored(*this);
}

void NetworkPlan::linear(nn::Linear&, const nn::LinearSpec& spec) {
  int64_t first = 0;
  for (const auto& part : spec.layouts.front()) {
    modules_.push_back({.name = part.name,
                        .inputs = spec.name(),
                        .linear = specs_.size(),
                        .first = first,
                        .rows = part.rows,
                        .k = spec.k,
                        .large = spec.large});
    first += part.rows;
    if (spec.bias) vectors_.push_back({part.name + ".bias", {part.rows}});
  }
  specs_.push_back(spec);
}

void NetworkPlan::conv(nn::Conv&, const nn::ConvSpec& spec) {
  fail("{}: is a convolution, which no network in INT8 has", spec.name);
}

void NetworkPlan::vector(nn::Vector&, const std::string& name, int64_t length) {
  vectors_.push_back({name, {length}});
}

// Rows like those of a linear, which files may also store in any dialect.
void NetworkPlan::table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) {
  const std::string module = name.substr(0, name.rfind(".weight"));
  modules_.push_back({.name = module,
                      .inputs = module,
                      .linear = specs_.size(),
                      .rows = rows,
                      .k = columns,
                      .is_linear = false});
  specs_.push_back({.layer = module, .k = columns, .layouts = {{{module, rows}}}});
}

weights::StoredParts NetworkPlan::open(const PlannedModule& module) const {
  return weights::stored_parts(source(), specs_[module.linear]);
}

uint64_t NetworkPlan::source_bytes(bool large_only) const {
  uint64_t bytes = 0;
  for (const PlannedModule& module : modules_) {
    if (!large_only || module.large) bytes += rows_of(module, open(module)).bytes();
  }
  return bytes;
}

void check_quantizable(const models::Family& family, const std::vector<NetworkFiles>& networks,
                       const QuantizeOptions& options, bool calibrates) {
  check(!networks.empty(), "quantize: there is no network");
  quant::recipe_from(quant::text_of(options.recipe));  // refuses numbers that no text says
  check_value(options.protection.worst >= 0, "protect",
              "protect: {} of the worst linears, expected a count", options.protection.worst);
  check_value(options.recipe.kind != Recipe::Kind::convrot ||
                  weights::can_say(options.dialect, Transform::rotate),
              "recipe",
              "recipe {}: the dialect {} cannot express a rotation; use rowwise or smoothquant, or "
              "the dialect comfyui",
              quant::text_of(options.recipe), word_of(options.dialect));
  check_value(
      options.recipe.kind != Recipe::Kind::smoothquant || calibrates || !options.statistics.empty(),
      "recipe",
      "recipe smoothquant: needs activations; give `captions` to calibrate with, or the "
      "`statistics` of an earlier calibration");
  uint64_t least = kLeastQuantizeMemory;  // and the activations, which stay in memory
  for (const auto& [name, inputs] : options.statistics) {
    least += (inputs.amax.size() + inputs.rows.size()) * sizeof(float);
  }
  check_value(options.max_memory == 0 || options.max_memory >= least, "max_memory",
              "`max_memory`: {} bytes are too few, expected {} at least", options.max_memory,
              least);
  std::vector<std::string> names;
  for (const NetworkFiles& network : networks) {
    const NetworkPlan plan(family, network);
    // What a base has in INT8 matters only where it is taken from there.
    const auto check_source = [](bool is_int8, const std::string& path) {
      check(!is_int8,
            "{}: is in INT8 already; quantize its source, another rounding would only add to the "
            "first",
            path);
    };
    check_source(plan.source().layers().front().holds_int8, network.files.path);
    for (const PlannedModule& module : plan.modules()) {
      if (!module.large) continue;
      for (const auto& part : plan.open(module)) check_source(part->for_int8(), part->path());
      names.push_back(module.name);
      if (!options.statistics.empty()) find_inputs(plan, options, module.inputs, module.k);
    }
  }
  for (const std::string& pattern : options.protection.patterns) {
    const Protection alone{.patterns = {pattern}};
    const bool used = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return quant::matches(alone, name);
    });
    check(used,
          "protect: {} names no large linear of the model; for example {}, where * stands for any "
          "text",
          in_quotes(pattern), in_quotes(names.back()));
  }
}

quant::LinearInputs inputs_of(const NetworkPlan& plan, const QuantizeOptions& options,
                              const std::string& linear, int64_t k) {
  if (!options.statistics.empty()) return find_inputs(plan, options, linear, k);
  return quant::synthetic_inputs(plan.prefix() + linear, k, kSyntheticRows);
}

// --- smoothing ---

Smoothing::Smoothing(ThreadPool& pool, const NetworkPlan& plan, const QuantizeOptions& options)
    : pool_(pool),
      plan_(plan),
      options_(options),
      folds_(!weights::can_say(options.dialect, Transform::smooth)),
      groups_(plan.groups()) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const quant::SmoothGroup& group = groups_[i];
    for (const std::string& module : group.modules) group_of_module_[module] = i;
    if (!group.vector.empty()) group_of_vector_[group.vector] = i;
    if (!group.rows_of.empty()) group_of_rows_[group.rows_of] = i;
  }
  // Where no weight can take the factors of a linear back, it is smoothed only in a dialect that
  // says them.
  std::map<std::string, size_t> lone;  // by what they see
  for (const PlannedModule& module : plan.modules()) {
    if (!module.large || group_of_module_.contains(module.name)) continue;
    if (folds_) {
      unsmoothed_[module.name].assign(static_cast<size_t>(module.k), 1);
      continue;
    }
    const auto [group, is_new] = lone.emplace(module.inputs, groups_.size());
    if (is_new) groups_.push_back({.inputs = module.inputs});
    group_of_module_[module.name] = group->second;
  }
}

const std::vector<float>& Smoothing::factors(size_t index) {
  const auto found = factors_.find(index);
  if (found != factors_.end()) return found->second;
  const quant::SmoothGroup& group = groups_[index];
  std::vector<float> weights;
  for (const PlannedModule& module : plan_.modules()) {
    const auto of = group_of_module_.find(module.name);
    if (of == group_of_module_.end() || of->second != index) continue;
    const weights::StoredParts parts = plan_.open(module);
    const auto amax = column_amax(pool_, NetworkPlan::rows_of(module, parts));
    for (const auto& part : parts) part->finish_reading();
    weights.resize(amax.size(), 0);
    for (size_t j = 0; j < amax.size(); ++j) weights[j] = std::max(weights[j], amax[j]);
  }
  const auto inputs =
      inputs_of(plan_, options_, group.inputs, static_cast<int64_t>(weights.size()));
  return factors_[index] =
             quant::smooth_factors(inputs.amax, weights, options_.recipe.alpha, folds_);
}

const std::vector<float>& Smoothing::columns(const std::string& module) {
  const auto found = group_of_module_.find(module);
  return found == group_of_module_.end() ? unsmoothed_.at(module) : factors(found->second);
}

float Smoothing::row_divisor(const std::string& module, int64_t row) {
  const auto found = group_of_rows_.find(module);
  if (!folds_ || found == group_of_rows_.end()) return 1;
  const int64_t at = row - groups_[found->second].first_row;
  if (at < 0) return 1;
  const std::vector<float>& all = factors(found->second);
  return at < static_cast<int64_t>(all.size()) ? all[static_cast<size_t>(at)] : 1;
}

const std::vector<float>* Smoothing::divisors(const std::string& vector) {
  const auto found = group_of_vector_.find(vector);
  return !folds_ || found == group_of_vector_.end() ? nullptr : &factors(found->second);
}

ModuleTransform transform_of(const PlannedModule& module, const QuantizeOptions& options,
                             Smoothing& smoothing) {
  ModuleTransform made;
  if (options.recipe.kind == Recipe::Kind::convrot) {
    const int64_t group = quant::group_for(options.recipe, module.k);
    if (group > 0) made.activations = made.weights = {Transform::rotate, {}, group};
  }
  if (options.recipe.kind == Recipe::Kind::smoothquant) {
    made.weights = {Transform::smooth, smoothing.columns(module.name), 0};
    if (!smoothing.folds()) {
      made.activations = made.weights;
      for (float& factor : made.activations.smooth) factor = 1 / factor;
    }
  }
  return made;
}

}  // namespace octet::convert
