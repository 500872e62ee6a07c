#include "audit/linear_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace octet::audit {
namespace {

constexpr double kSmallWidened = 16;
// Linears of one model alternate at least this often, on average.
constexpr int64_t kLongestRun = 8, kLongestNative = 32;
// Names of layers that a pair remembers, to count them.
constexpr size_t kMostLayers = 100'000;

double us_of(const AuditLinear& linear) {
  return linear.gemm_us + linear.dequantize_us + linear.quantize_us;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

template <class Map>
auto most_frequent(const Map& map) {
  return std::max_element(map.begin(), map.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

using Shape = std::pair<int64_t, int64_t>;  // n, k

std::string text_of(const AuditPair& pair) {
  const std::string dims = pair.dims.empty() ? "" : fmt::format("[{}]", fmt::join(pair.dims, ","));
  const std::string product = pair.op.empty() ? "a GEMM" : pair.op;
  const std::string size = pair.k > 0 ? fmt::format(" with k = {}", pair.k) : "";
  const auto several = [](int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const std::string where =
      pair.layers > 0 ? "in " + several(pair.layers, "layer") : several(pair.calls, "time");
  return fmt::format("{}{} -> {}, then {}{}, {}", pair.stored, dims, pair.floating, product, size,
                     where);
}

}  // namespace

std::string floating_name(const WorkList& list, const Work& work) {
  if (const auto product = list.product(work)) {
    if (product->weight == ScalarType::f16) return "fp16";
    if (product->weight == ScalarType::bf16) return "bf16";
    if (is_float(product->weight)) return "fp32";
  }
  if (work.work == WorkClass::single_gemm) return "fp32";
  if (work.work == WorkClass::gemm) return "floating point";
  if (work.type == ScalarType::f16) return "fp16";
  return work.type == ScalarType::bf16 ? "bf16" : "bf16/fp16";
}

std::string model_of(std::string_view layer) {
  // What wraps whatever model there is.
  static constexpr std::array<std::string_view, 5> kWrappers = {"model", "module", "base_model",
                                                                "_orig_mod", "pipeline"};
  std::vector<std::string_view> parts;
  size_t number = 0;
  while (!layer.empty()) {
    const size_t dot = layer.find('.');
    const std::string_view part = layer.substr(0, dot);
    if (is_number(part)) break;
    parts.push_back(part);
    ++number;
    if (dot == layer.npos) return "";  // no block has a number
    layer.remove_prefix(dot + 1);
  }
  // The last part before the number is the list of blocks.
  std::string model;
  for (size_t i = 0; i + 1 < number; ++i) {
    model += fmt::format("{}{}", model.empty() ? "" : ".", parts[i]);
    if (std::find(kWrappers.begin(), kWrappers.end(), parts[i]) == kWrappers.end()) break;
  }
  return model;
}

void LinearBook::note_order(const std::string& model, const LinearCall& call) {
  if (!is_fake(call.verdict) && !is_native(call.verdict)) return;
  const bool fake = is_fake(call.verdict);
  Order& order = orders_[model];
  if (fake) {
    order.runs += order.last_was_fake ? 0 : 1;
    order.fakes += call.calls;
  } else {
    order.natives += call.calls;
  }
  order.last_was_fake = fake;
}

void LinearBook::add_pair(const WorkList& list, const LinearCall& call, const std::string& layer,
                          const std::string& floating) {
  const bool told = call.stored != ScalarType::unknown;
  const std::string stored = told ? std::string(name_of(call.stored)) : "codes";
  std::string_view op = list.op_name(list.works()[call.work]);
  op.remove_prefix(std::min(op.size(), op.rfind(':') + 1));
  PairSum& sum = pairs_[{stored, call.stored_dims, floating, call.n, call.k}];
  AuditPair& pair = sum.pair;
  if (pair.calls == 0) {
    pair.stored = stored;
    pair.dims = call.stored_dims;
    pair.floating = floating;
    pair.op = op;
    pair.n = call.n;
    pair.k = call.k;
  }
  pair.calls += call.calls;
  pair.certain = pair.certain || is_fake(call.verdict);
  if (!layer.empty() && sum.layers.size() < kMostLayers) sum.layers.insert(layer);
}

void LinearBook::add(const WorkList& list, const std::vector<LinearCall>& calls) {
  for (const LinearCall& call : calls) {
    const Work& work = list.works()[call.work];
    const std::string type = floating_name(list, work);
    const std::string layer(list.layer(work));
    const std::string model = model_of(layer);
    if (!is_native(call.verdict)) floating_[model][type] += call.calls;
    if (call.verdict == AuditVerdict::unclear) doubts_[model][call.doubt] += call.calls;
    note_order("", call);
    if (!model.empty()) note_order(model, call);
    if (call.is_widened) add_pair(list, call, layer, type);
    AuditLinear& linear = layers_[{layer, call.m, call.n, call.k, call.verdict, list.name(work)}];
    if (linear.calls == 0) {
      linear.layer = layer;
      linear.m = call.m;
      linear.n = call.n;
      linear.k = call.k;
      linear.verdict = call.verdict;
      linear.how = how_it_ran(call.verdict, call.stored, type);
      linear.kernel = list.name(work);
      linear.gemm_key = key_of(work.work);
    }
    linear.calls += call.calls;
    linear.gemm_us += call.gemm_us;
    linear.dequantize_us += call.dequantize_us;
    linear.quantize_us += call.quantize_us;
  }
}

void LinearBook::add_reported(const ReportedLinear& reported, AuditVerdict verdict, WorkClass work,
                              const std::string& floating) {
  if (!is_native(verdict)) floating_[""][floating] += reported.calls;
  AuditLinear& linear = layers_[{reported.layer, 0, 0, 0, verdict, reported.kernel}];
  linear.layer = reported.layer;
  linear.verdict = verdict;
  linear.how = how_it_ran(verdict, ScalarType::int8, floating);
  linear.kernel = reported.kernel;
  linear.gemm_key = key_of(work);
  linear.calls += reported.calls;
  linear.gemm_us += reported.us;
  // One program wrote the report of one model.
  orders_[""].runs += is_fake(verdict) ? reported.calls : 0;
  orders_[""].fakes += is_fake(verdict) ? reported.calls : 0;
}

std::vector<std::string> LinearBook::models() const {
  std::map<std::string, double> us;
  for (const auto& [key, linear] : layers_) {
    const std::string model = model_of(linear.layer);
    if (!model.empty()) us[model] += us_of(linear);
  }
  // Blocks outside of all models are one more, of no name: whose, nobody knows.
  const bool has_others = std::any_of(layers_.begin(), layers_.end(), [](const auto& each) {
    const std::string& layer = each.second.layer;
    return !layer.empty() && model_of(layer).empty() && layer.find_first_of("0123456789") != 0 &&
           model_of("x." + layer) == "x";
  });
  if (us.size() < 2 || has_others) return {""};
  std::vector<std::string> names;
  for (const auto& [name, time] : us) names.push_back(name);
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return us.at(a) > us.at(b); });
  return names;
}

// Fake and native linears of the same sizes, or such that alternate and share a side: the layers of
// one model have its width.
bool LinearBook::is_one_model(const std::string& model) const {
  std::set<std::tuple<int64_t, int64_t, int64_t>> native_products;
  std::set<Shape> native_shapes, shared_shapes;
  std::set<int64_t> native_sides;
  const auto is_of_it = [&](const AuditLinear& linear) {
    return model.empty() || model_of(linear.layer) == model;
  };
  for (const auto& [key, linear] : layers_) {
    if (!is_of_it(linear) || !is_native(linear.verdict)) continue;
    native_products.insert({linear.m, linear.n, linear.k});
    native_shapes.insert({linear.n, linear.k});
    native_sides.insert({linear.n, linear.k});
  }
  bool share_a_side = false;
  for (const auto& [key, linear] : layers_) {
    if (!is_of_it(linear) || !is_fake(linear.verdict)) continue;
    const bool sized = linear.n > 0;
    share_a_side =
        share_a_side || native_sides.contains(linear.n) || native_sides.contains(linear.k);
    if (sized && native_products.contains({linear.m, linear.n, linear.k})) return true;
    if (sized && native_shapes.contains({linear.n, linear.k})) {
      shared_shapes.insert({linear.n, linear.k});
    }
  }
  if (shared_shapes.size() > 1) return true;
  const auto order = orders_.find(model);
  if (order == orders_.end() || !share_a_side) return false;
  const auto& [last, fakes, natives, runs] = order->second;
  return runs > 1 && fakes <= kLongestRun * runs && natives <= kLongestNative * runs;
}

LinearCounts LinearBook::counts(const std::string& model) const {
  // By shape of weights: what all of its products had to do, and whether they were quantized.
  struct OfShape {
    double work = 0;
    bool quantized = false;
  };
  std::map<Shape, OfShape> shapes;
  std::set<Shape> native;
  double most = 0;
  const auto is_of_it = [&](const AuditLinear& linear) {
    return model.empty() || model_of(linear.layer) == model;
  };
  for (const auto& [key, linear] : layers_) {
    if (!is_of_it(linear)) continue;
    OfShape& shape = shapes[{linear.n, linear.k}];
    shape.work += static_cast<double>(linear.m) * static_cast<double>(linear.n) *
                  static_cast<double>(linear.k) * static_cast<double>(linear.calls);
    shape.quantized = shape.quantized || linear.verdict != AuditVerdict::unquantized;
    most = std::max(most, shape.work);
    if (is_native(linear.verdict)) native.insert({linear.n, linear.k});
  }
  LinearCounts counts;
  for (const auto& [key, linear] : layers_) {
    if (!is_of_it(linear)) continue;
    const int64_t weights = linear.n * linear.k;
    const OfShape& shape = shapes.at({linear.n, linear.k});
    // Small widened weights are of a LoRA, or the outliers of LLM.int8.
    const double least = is_fake(linear.verdict) ? most / kSmallWidened : most / kSmallShare;
    const bool may_be_small = !shape.quantized || is_fake(linear.verdict);
    if (weights > 0 && may_be_small && shape.work < least) {
      counts.small += linear.calls;
      continue;
    }
    counts.of(linear.verdict) += {linear.calls, us_of(linear)};
    // Where sizes are not told, a bf16 product may be a LoRA's or of another part of the model.
    const bool suspect = linear.verdict == AuditVerdict::unclear ||
                         (linear.verdict == AuditVerdict::unquantized && weights > 0);
    if (suspect && native.contains({linear.n, linear.k})) counts.beside_native += linear.calls;
    const bool floats =
        linear.verdict == AuditVerdict::unquantized || linear.verdict == AuditVerdict::unclear;
    if (floats && weights == 0 && linear.layer.empty()) {
      counts.unsized += linear.calls;
    }
  }
  counts.is_one_model = is_one_model(model);
  std::map<std::string, int64_t> floating;
  std::map<Doubt, int64_t> doubts;
  for (const auto& [name, types] : floating_) {
    if (!model.empty() && name != model) continue;
    for (const auto& [type, calls] : types) floating[type] += calls;
  }
  for (const auto& [name, kinds] : doubts_) {
    if (!model.empty() && name != model) continue;
    for (const auto& [doubt, calls] : kinds) doubts[doubt] += calls;
  }
  if (!floating.empty()) counts.floating = most_frequent(floating)->first;
  if (!doubts.empty()) counts.doubt = most_frequent(doubts)->first;
  return counts;
}

std::vector<AuditLinear> LinearBook::layers() const {
  std::vector<AuditLinear> layers;
  for (const auto& [key, linear] : layers_) layers.push_back(linear);
  return layers;
}

std::vector<AuditPair> LinearBook::pairs() const {
  std::vector<AuditPair> pairs;
  for (const auto& [key, sum] : pairs_) {
    pairs.push_back(sum.pair);
    pairs.back().layers = static_cast<int64_t>(sum.layers.size());
    pairs.back().text = text_of(pairs.back());
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const AuditPair& a, const AuditPair& b) {
    return std::pair(!a.certain, -a.calls) < std::pair(!b.certain, -b.calls);
  });
  return pairs;
}

}  // namespace octet::audit
