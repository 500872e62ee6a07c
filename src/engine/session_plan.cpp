// Where the parts of a session's model stay.
#include <algorithm>
#include <set>
#include <utility>

#include "backend/gemm_tuning.h"
#include "backend/host_backend.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "engine/device_parts.h"
#include "engine/host_memory.h"
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
          .scores = nn::scores_for(options_.model.attention),
          .rows_at_once = rows_at_once_};
}

// The first has the text encoder and the decoder around its networks.
DeviceParts Session::parts_of(const Denoiser& device) {
  const bool is_first = &device == denoisers_.front().get();
  return {.model = model_,
          .family = family_,
          .networks = device.networks,
          .branches = device.branches,
          .networks_as = networks_as(),
          .text_as = is_first ? std::optional(text_as()) : std::nullopt,
          .once = options_.once};
}

void Session::count_work() {
  for (const auto& device : denoisers_) {
    const uint64_t of_ops = keeps_data_on_host(device->backend()) ? 0 : models::kOpsBytes;
    DeviceParts parts = parts_of(*device);
    device->work = parts.work(of_ops);
    if (options_.model.max_memory == 0) continue;
    parts.networks_as.rows_at_once = DeviceParts::kRowsAtOnce;
    device->least_work = parts.work(of_ops);
  }
}

// Of the first pictures.
models::Extent Session::usual_extent() const {
  models::Extent extent = denoisers_.front()->work.usual_extent();
  const bool asked = options_.size.width > 0 && options_.size.height > 0;
  const auto [width, height] = asked ? options_.size : facts_->defaults.size;
  const int side = model_.sizes.token_side;
  extent.grid = {height / side, width / side};
  return extent;
}

void Session::fit(const Job& job) {
  if (text_ != nullptr && text_->rules().random) return;  // what has no files stays in any case
  const models::Extent extent = job.extent();
  bool fits = device_plans_.size() == denoisers_.size();  // else planning has failed before
  for (size_t i = 0; fits && i < denoisers_.size(); ++i) {
    const Denoiser& device = *denoisers_[i];
    const uint64_t before = device.work.of_steps(device.planned);
    const uint64_t now = device.work.of_steps(extent);
    const DevicePlan& plan = device_plans_[i];
    fits = now <= before || plan.taken + now - before <= plan.at_hand;
  }
  if (fits) return;
  models::Extent larger = denoisers_.front()->planned;
  larger.grid = {std::max(larger.grid.height, extent.grid.height),
                 std::max(larger.grid.width, extent.grid.width)};
  larger.text_tokens = std::max(larger.text_tokens, extent.text_tokens);
  larger.steps = std::max(larger.steps, extent.steps);
  check_fits(larger);
  plan_again(larger);
}

// What no plan makes room for is refused before anything is released for it.
void Session::check_fits(const models::Extent& extent) {
  const uint64_t limit = options_.model.max_memory;
  if (limit == 0) return;
  for (const auto& device : denoisers_) {
    Backend& of_device = device->backend();
    const bool on_host = keeps_data_on_host(of_device);
    const Backend::MemoryLimit kept = of_device.memory_limit();
    const uint64_t most = kept.bytes > 0 ? kept.usable() : limit;
    const DeviceParts parts = parts_of(*device);
    MemoryAtHand memory = parts.memory(most, /*host=*/UINT64_MAX / 2, device->least_work, extent);
    memory.shared = on_host;
    const DevicePlan plan = plan_residency(parts.needs(&of_device), options_.model.keep, memory);
    check_budget(*device, plan, most, device->least_work.of_steps(extent));
  }
}

void Session::plan_again(const models::Extent& extent) {
  const models::Extent before = denoisers_.front()->planned;
  for (const auto& device : denoisers_) {
    device->preparations.forget();
    device->stream.reset();
  }
  for_each_network([](PartStore& store) { store.drop(); });
  if (text_ != nullptr) text_->drop();  // planning may have failed before
  if (decoder_ != nullptr) decoder_->drop();
  for (const auto& backend : backends_) backend->trim_memory();
  try {
    plan_within(extent);
  } catch (...) {
    // As it was, for pictures that fit.
    try {
      plan_within(before);
    } catch (const Error& error) {
      log::debug("planning as before: {}", error.what());
    }
    merge(loras_);
    throw;
  }
  merge(loras_);
}

bool Session::gives_way() {
  if (text_ != nullptr && text_->rules().random) return false;  // there are no files to read again
  const std::string before = text_of(plan_);
  plan_again(models::Extent(denoisers_.front()->planned));
  return text_of(plan_) != before;
}

// Bytes of a device's memory that this session may use.
uint64_t Session::budget_of(const Denoiser& device, double free_host) const {
  Backend& of_device = device.backend();
  uint64_t free =
      of_device.free_memory().value_or(free_for_model(static_cast<uint64_t>(free_host)));
  const uint64_t limit = options_.model.max_memory;
  if (limit == 0) return free;
  // What a device with a limit of its own says has been reduced by what it takes for itself.
  if (of_device.memory_limit().bytes > 0) return free;
  return free == 0 || limit < free ? limit : free;
}

// In the order of a step.
void Session::add_stream(Denoiser& device, const DevicePlan& plan) {
  device.stream.reset();
  if (plan.buffers == 0 || keeps_data_on_host(device.backend())) return;
  constexpr uint64_t kBetweenTensors = uint64_t{64} << 10;  // their places begin at multiples
  device.stream = std::make_unique<WeightStream>(device.backend(), plan.buffers,
                                                 plan.buffer_bytes + kBetweenTensors);
}

void Session::check_budget(const Denoiser& device, const DevicePlan& plan, uint64_t free,
                           uint64_t work) const {
  const uint64_t limit = options_.model.max_memory;
  if (limit == 0 || plan.least <= free) return;
  const bool on_host = keeps_data_on_host(device.backend());
  if (on_host && free < limit) return check_host_memory(plan, free);
  const uint64_t of_context = device.backend().memory_limit().unavailable;
  const auto gigabytes = [](uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; };
  if (!on_host && plan.least + of_context <= limit) {
    throw OutOfMemory(sentence(
        "{}: {:.2f} GB are free, and pictures of this size take {:.2f} GB at least; close other "
        "programs, or use a smaller `size`",
        device.backend().name(), gigabytes(free), gigabytes(plan.least)));
  }
  constexpr uint64_t kNoticeable = 10'000'000;
  const uint64_t rest = plan.least - std::min(plan.least, work + plan.buffer_bytes);
  std::string others;
  if (rest > kNoticeable) others += fmt::format(", {:.2f} for what comes beside", gigabytes(rest));
  if (!on_host) others += fmt::format(" and {:.2f} for the GPU's context", gigabytes(of_context));
  check_value(
      false, "max_memory",
      "`max_memory`: {:.2f} GB are too few for pictures of this size, which take {:.2f} GB "
      "at least: {:.2f} for the work of a step, {:.2f} for a layer at a time{}; allow more, or use "
      "a smaller `size`",
      gigabytes(limit), gigabytes(plan.least + of_context), gigabytes(work),
      gigabytes(plan.buffer_bytes), others);
}

// Memory that is too small for whole passes may do for passes that work on some rows at a time.
// On a GPU some kernels are chosen by the number of rows, so the bits may differ from those of
// whole passes: nobody works like this who need not.
void Session::plan_within(const models::Extent& extent) {
  if (rows_at_once_ != 0) use_rows(0);
  try {
    return make_plan(extent);
  } catch (const InvalidRequest&) {  // `max_memory` is too small
  } catch (const OutOfMemory&) {     // a host's memory is
  }
  use_rows(DeviceParts::kRowsAtOnce);
  try {
    make_plan(extent);
  } catch (...) {
    make_plan(extent, /*checked=*/false);  // the session keeps its parts
    throw;
  }
}

// Parts are counted while nobody brings them weights.
void Session::use_rows(int64_t at_once) {
  rows_at_once_ = at_once;
  text_.reset();
  decoder_.reset();
  for (const auto& device : denoisers_) {
    device->stores.clear();
    device->ctx.rows_at_once = at_once;
  }
  count_work();
}

// Each device is planned by itself.
void Session::make_plan(const models::Extent& extent, bool checked) {
  const models::RunAs networks = networks_as();
  plan_.clear();
  device_plans_.clear();
  available_bytes_ = 0;
  std::vector<std::vector<PartNeed>> needs;
  std::vector<PartNeed> all;
  for (const auto& device : denoisers_) {
    needs.push_back(parts_of(*device).needs(&device->backend()));
    const bool is_first = needs.size() == 1;
    all.insert(is_first ? all.end() : all.end() - 1, needs.back().begin(), needs.back().end());
    device->planned = extent;
  }
  check_rules(options_.model.keep, all);

  const double free_host = free_memory().value_or(FreeMemory{}).bytes;
  // A fifth of the host's memory is left for what is not counted.
  auto host = static_cast<uint64_t>(0.8 * free_host);
  uint64_t taken = 0;  // of a memory that both devices share
  for (size_t i = 0; i < denoisers_.size(); ++i) {
    Denoiser& device = *denoisers_[i];
    const bool shared = keeps_data_on_host(device.backend());
    uint64_t free = budget_of(device, free_host);
    if (i > 0 && share_memory(backend(), device.backend())) {
      free -= std::min(free, taken);
    } else {
      available_bytes_ += free;
    }
    MemoryAtHand memory = parts_of(device).memory(free, host, device.work, extent);
    memory.shared = shared;
    if (shared) memory.work += loading_bytes(needs[i]);
    DevicePlan plan = plan_residency(needs[i], options_.model.keep, memory);
    if (checked) check_budget(device, plan, free, device.work.of_steps(extent));
    if (checked && shared) check_host_memory(plan, free);
    taken += device.work.of(extent);
    for (const PartPlace& place : plan.places) {
      taken += place.device_bytes;
      host -= std::min(host, place.host_bytes);
    }
    place(device, plan, networks);
    add_stream(device, plan);
    device_plans_.push_back(std::move(plan));
  }
}

// Makes the stores of a device's parts, and adds their places to the plan.
void Session::place(Denoiser& device, DevicePlan& plan, const models::RunAs& networks) {
  const bool is_first = &device == denoisers_.front().get();
  if (device_count() > 1) {
    for (PartPlace& each : plan.places) each.device = device.backend().name();
  }
  auto at = plan.units.begin();
  const auto store = [&](models::Part& part) {
    auto made = std::make_unique<PartStore>(part, context_on(device.backend()), *at++);
    made->set_reads_ahead(keeps_data_on_host(device.backend()) && plan.buffers != 1);
    return made;
  };
  device.stores.clear();
  const Linears of_text = options_.model.text_encoder_linears, linears = options_.model.linears;
  if (is_first) {
    text_.reset();
    decoder_.reset();
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
  plan_.insert(is_first ? plan_.end() : plan_.end() - 1, plan.places.begin(), plan.places.end());
}

}  // namespace octet::engine
