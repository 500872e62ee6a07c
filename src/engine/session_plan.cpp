// Where the parts of a session's model stay.
#include <algorithm>
#include <set>
#include <utility>

#include "backend/gemm_tuning.h"
#include "backend/host_backend.h"
#include "base/free_memory.h"
#include "engine/residency.h"
#include "engine/session.h"
#include "models/footprint.h"
#include "nn/linear_list.h"

namespace octet::engine {
namespace {

// For a text encoder that is quantized as it is loaded. Some of its channels are a hundred times as
// large as the others, and a row has one scale, set by its largest value.
constexpr int64_t kTextRotation = 256;

bool share_memory(const Backend& a, const Backend& b) {
  return a.name() == b.name() || (keeps_data_on_host(a) && keeps_data_on_host(b));
}

}  // namespace

std::function<bool(const nn::LinearSpec&)> Session::faster_in_floating() const {
  const bool asked = options_.size.width > 0 && options_.size.height > 0;
  const auto [width, height] = asked ? options_.size : facts_->defaults.size;
  const int side = model_.sizes.token_side;
  const int64_t tokens = int64_t{width / side} * (height / side);
  // By size: a whole model has only a few sizes of linears.
  std::set<std::pair<int64_t, int64_t>> faster;
  for (const auto& network : model_.networks) {
    nn::LinearList list;
    network->visit_all(list);
    for (const nn::LinearSpec& spec : list.linears()) {
      if (!spec.large || faster.contains({spec.n(), spec.k})) continue;
      if (backends_.front()->tuning().is_faster_in_bf16(tokens, spec.n(), spec.k)) {
        faster.insert({spec.n(), spec.k});
      }
    }
  }
  if (faster.empty()) return {};
  return [faster](const nn::LinearSpec& spec) {
    return spec.large && faster.contains({spec.n(), spec.k});
  };
}

models::RunAs Session::text_as() const {
  return {.dtype = dtype_, .int8 = options_.model.text_encoder_linears == Linears::int8};
}

models::RunAs Session::networks_as() const {
  const Linears linears = options_.model.linears;
  // Plans are for bf16; in f32 the product would be slower than INT8 anyway.
  const bool chooses = linears == Linears::automatic && dtype_ == DType::bf16;
  return {.dtype = dtype_,
          .int8 = linears == Linears::int8 || linears == Linears::automatic,
          .floating = chooses ? faster_in_floating() : nullptr,
          .scores = nn::scores_for(options_.model.attention)};
}

// Of a device: the first has the text encoder and the decoder around its networks.
std::vector<PartNeed> Session::needs_of(const Denoiser& device, const models::RunAs& networks) {
  std::vector<PartNeed> needs;
  const auto add = [&](models::Part& part, const models::RunAs& how) -> PartNeed& {
    const models::WeightBytes bytes = models::weight_bytes(part, how, &device.backend());
    needs.push_back(
        {.name = std::string(part.name()), .bytes = bytes.all, .largest_unit = bytes.largest_unit});
    return needs.back();
  };
  const bool is_first = &device == denoisers_.front().get();
  if (is_first) add(*model_.text_encoder, text_as()).once = options_.once;
  for (const auto& [index, network] : device.networks) add(*network, networks).runs_often = true;
  if (is_first) add(*model_.decoder, {.dtype = dtype_, .int8 = false});
  return needs;
}

// Each device is planned by itself.
void Session::make_plan() {
  const models::RunAs networks = networks_as();
  std::vector<std::vector<PartNeed>> needs;
  std::vector<PartNeed> all;
  for (const auto& device : denoisers_) {
    needs.push_back(needs_of(*device, networks));
    const bool is_first = needs.size() == 1;
    all.insert(is_first ? all.end() : all.end() - 1, needs.back().begin(), needs.back().end());
    std::vector<models::Network*> its;
    for (const auto& [index, network] : device->networks) its.push_back(network);
    device->work =
        WorkBytes(model_, its, networks, is_first ? std::optional(text_as()) : std::nullopt);
  }
  check_rules(options_.model.keep, all);

  const double free_host = free_memory().value_or(FreeMemory{}).bytes;
  const uint64_t limit = options_.model.max_memory;
  // A fifth of the host's memory is left for what is not counted.
  auto host = static_cast<uint64_t>(0.8 * free_host);
  uint64_t taken = 0;  // of a memory that both devices share
  double of_networks = 0;
  bool stay = true;
  for (size_t i = 0; i < denoisers_.size(); ++i) {
    Denoiser& device = *denoisers_[i];
    const bool shared = keeps_data_on_host(device.backend());
    uint64_t free = device.backend().free_memory().value_or(static_cast<uint64_t>(free_host));
    if (i > 0 && share_memory(backend(), device.backend())) {
      free -= std::min(free, taken);
    } else if (i > 0) {
      available_bytes_ += free;
    }
    if (limit > 0 && (free == 0 || limit < free)) free = limit;
    if (i == 0) available_bytes_ = free;
    const std::vector<PartPlace> places = plan_residency(
        needs[i], options_.model.keep,
        {.device = free, .host = host, .shared = shared, .work = device.work.usual()});
    taken += device.work.usual();
    for (const PartPlace& place : places) {
      if (place.where == Residency::device) taken += place.bytes;
      if (place.where == Residency::host) host -= std::min(host, place.bytes);
    }
    place(device, places, networks);
    for (size_t part = 0; part < places.size(); ++part) {
      if (!shared || !needs[i][part].runs_often) continue;
      of_networks += static_cast<double>(places[part].bytes);
      stay = stay && places[part].where == Residency::device;
    }
  }
  // A full GPU reports an error; Linux would kill the process.
  if (of_networks > 0 && stay) check_free_memory("denoising", of_networks);
}

// Makes the stores of a device's parts, and adds their places to the plan.
void Session::place(Denoiser& device, std::vector<PartPlace> places,
                    const models::RunAs& networks) {
  const bool is_first = &device == denoisers_.front().get();
  if (device_count() > 1) {
    for (PartPlace& each : places) each.device = device.backend().name();
  }
  auto at = places.begin();
  const auto store = [&](models::Part& part) {
    return std::make_unique<PartStore>(part, context_on(device.backend()), (at++)->where);
  };
  const Linears of_text = options_.model.text_encoder_linears, linears = options_.model.linears;
  if (is_first) {
    text_ = store(*model_.text_encoder);
    text_->rules().int8 = of_text != Linears::floating;
    text_->rules().fake = of_text == Linears::fake;
    text_->rules().rotation = kTextRotation;
  }
  for (const auto& [index, network] : device.networks) {
    auto made = store(*network);
    made->rules().int8 = linears != Linears::floating;
    made->rules().fake = linears == Linears::fake;
    made->rules().floating = networks.floating;
    made->rules().keep_converted = options_.model.cache_weights;
    device.stores.emplace(index, std::move(made));
  }
  if (is_first) {
    decoder_ = store(*model_.decoder);
    decoder_->rules().int8 = false;
  }
  plan_.insert(is_first ? plan_.end() : plan_.end() - 1, places.begin(), places.end());
}

}  // namespace octet::engine
