#include "convert/quantize_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/invalid_request.h"
#include "formats/text.h"
#include "models/ideogram4/dit.h"
#include "models/ideogram4/smooth_groups.h"

namespace octet::convert {
namespace {

constexpr int64_t kSyntheticRows = 64;

const quant::LinearInputs& find_inputs(const BranchPlan& plan, const QuantizeOptions& options,
                                       const std::string& linear, int64_t k) {
  const std::string name = plan.branch() + linear;
  const auto found = options.statistics.find(name);
  check(found != options.statistics.end() && found->second.k == k,
        "{}: has no activations of {} channels for {}; it was made with another model, calibrate "
        "again",
        options.statistics_name, k, in_quotes(name));
  return found->second;
}

}  // namespace

BranchPlan::BranchPlan(const QuantizeBranch& branch)
    : conditional_(branch.conditional),
      source_(open_dit(branch.files, branch.conditional)),
      groups_(ideogram4::smooth_groups(source_.config)) {
  // Files of the unconditional branch have the text's weights, too: they stay complete.
  const bool with_text = conditional_ || source_.weights.find("llm_cond_norm.weight") != nullptr;
  ideogram4::Dit dit;
  dit.config = source_.config;
  weights::CheckpointCheck present(source_.weights);
  visit_weights(dit, with_text, present);
  present.check_nothing_is_left(
      [&](std::string_view name) { return ideogram4::is_ignored(name, conditional_); });
  visit_weights(dit, with_text, *this);
}

void BranchPlan::linear(nn::Linear&, const nn::LinearSpec& spec) {
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

void BranchPlan::conv(nn::Conv&, const nn::ConvSpec& spec) {
  fail("{}: is a convolution, which no transformer has", spec.name);
}

void BranchPlan::vector(nn::Vector&, const std::string& name, int64_t length) {
  vectors_.push_back({name, {length}});
}

// Rows like those of a linear, which files may also store in any dialect.
void BranchPlan::table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) {
  const std::string module = name.substr(0, name.rfind(".weight"));
  modules_.push_back({.name = module,
                      .inputs = module,
                      .linear = specs_.size(),
                      .rows = rows,
                      .k = columns,
                      .is_linear = false});
  specs_.push_back({.layer = module, .k = columns, .layouts = {{{module, rows}}}});
}

weights::StoredParts BranchPlan::open(const PlannedModule& module) const {
  return weights::stored_parts(source_.weights, specs_[module.linear]);
}

uint64_t BranchPlan::source_bytes(bool large_only) const {
  uint64_t bytes = 0;
  for (const PlannedModule& module : modules_) {
    if (!large_only || module.large) bytes += rows_of(module, open(module)).bytes();
  }
  return bytes;
}

void check_quantizable(const std::vector<QuantizeBranch>& branches, const QuantizeOptions& options,
                       bool calibrates) {
  check(!branches.empty(), "quantize: there is no transformer");
  check_value(options.recipe.kind != quant::Recipe::Kind::convrot ||
                  can_say(options.dialect, Transform::rotate),
              "recipe {}: the dialect {} has no word for a rotation; take rowwise or smoothquant, "
              "or write the dialect comfyui",
              to_string(options.recipe), to_string(options.dialect));
  check_value(options.recipe.kind != quant::Recipe::Kind::smoothquant || calibrates ||
                  !options.statistics.empty(),
              "recipe smoothquant: needs activations; give --captions to calibrate with, or "
              "--statistics of an earlier calibration");
  uint64_t least = kLeastQuantizeMemory;  // and the activations, which stay in memory
  for (const auto& [name, inputs] : options.statistics) {
    least += (inputs.amax.size() + inputs.rows.size()) * sizeof(float);
  }
  check_value(options.max_memory == 0 || options.max_memory >= least,
              "max-memory: {} bytes are too few, expected {} at least", options.max_memory, least);
  std::vector<std::string> names;
  for (const QuantizeBranch& branch : branches) {
    const BranchPlan plan(branch);
    check(!plan.source().weights.holds_int8(),
          "{}: is in INT8 already; quantize its source, another rounding would only add to the "
          "first",
          branch.files.path);
    for (const PlannedModule& module : plan.modules()) {
      if (!module.large) continue;
      names.push_back(module.name);
      if (!options.statistics.empty()) find_inputs(plan, options, module.inputs, module.k);
    }
  }
  for (const std::string& pattern : options.protection.patterns) {
    const quant::Protection alone{.patterns = {pattern}};
    const bool used = std::any_of(names.begin(), names.end(),
                                  [&](const std::string& name) { return alone.matches(name); });
    check(used, "protect: {} names no large linear of the model; for example {} or {}",
          in_quotes(pattern), in_quotes(names.back()), in_quotes("layers.*.attention.o"));
  }
}

quant::LinearInputs inputs_of(const BranchPlan& plan, const QuantizeOptions& options,
                              const std::string& linear, int64_t k) {
  if (!options.statistics.empty()) return find_inputs(plan, options, linear, k);
  return quant::synthetic_inputs(plan.branch() + linear, k, kSyntheticRows);
}

// --- smoothing ---

Smoothing::Smoothing(ThreadPool& pool, const BranchPlan& plan, const QuantizeOptions& options)
    : pool_(pool),
      plan_(plan),
      options_(options),
      folds_(!can_say(options.dialect, Transform::smooth)) {
  for (size_t i = 0; i < plan.groups().size(); ++i) {
    const quant::SmoothGroup& group = plan.groups()[i];
    for (const std::string& module : group.modules) group_of_module_[module] = i;
    if (!group.vector.empty()) group_of_vector_[group.vector] = i;
    if (!group.rows_of.empty()) group_of_rows_[group.rows_of] = i;
  }
}

const std::vector<float>& Smoothing::factors(size_t index) {
  const auto found = factors_.find(index);
  if (found != factors_.end()) return found->second;
  const quant::SmoothGroup& group = plan_.groups()[index];
  std::vector<float> weights;
  for (const PlannedModule& module : plan_.modules()) {
    const auto of = group_of_module_.find(module.name);
    if (of == group_of_module_.end() || of->second != index) continue;
    const weights::StoredParts parts = plan_.open(module);
    const auto amax = column_amax(pool_, BranchPlan::rows_of(module, parts));
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
  check(found != group_of_module_.end(), "{}: its inputs cannot be smoothed", module);
  return factors(found->second);
}

float Smoothing::row_divisor(const std::string& module, int64_t row) {
  const auto found = group_of_rows_.find(module);
  if (!folds_ || found == group_of_rows_.end()) return 1;
  const int64_t at = row - plan_.groups()[found->second].first_row;
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
  if (options.recipe.kind == quant::Recipe::Kind::convrot) {
    const int64_t group = group_for(options.recipe, module.k);
    if (group > 0) made.activations = made.weights = {Transform::rotate, {}, group};
  }
  if (options.recipe.kind == quant::Recipe::Kind::smoothquant) {
    made.weights = {Transform::smooth, smoothing.columns(module.name), 0};
    if (!smoothing.folds()) {
      made.activations = made.weights;
      for (float& factor : made.activations.smooth) factor = 1 / factor;
    }
  }
  return made;
}

}  // namespace octet::convert
