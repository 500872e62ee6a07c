#include "engine/session.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "base/invalid_request.h"
#include "devices/select.h"
#include "engine/rendering.h"

namespace octet::engine {
namespace {

std::vector<std::unique_ptr<Backend>> backends_for(const ModelOptions& options) {
  std::vector<std::unique_ptr<Backend>> made;
  for (const std::string& device : device_list(options.device)) {
    made.push_back(select_backend({.device = device,
                                   .threads = options.threads,
                                   .tune = options.tuning,
                                   .refines = true,
                                   .memory_limit = options.max_memory}));
  }
  return made;
}

// A second device has nothing to do where steps have one branch.
void check_devices(const models::Family& family, const ModelOptions& options) {
  if (device_list(options.device).size() == 1) return;
  check_value(family.branches.size() > 1, "device",
              "device {}: a step of {} has one branch, and a second device would have nothing to "
              "do; name one",
              options.device, family.title);
  check_value(options.guided, "device",
              "device {}: no step is guided, and a second device would have nothing to do; name "
              "one, or set `guidance` to more than 1",
              options.device);
}

// A number that a program made into an enumerator.
template <class Enum>
void check_known(Enum value, const char* field) {
  check_value(*word_of(value) != '\0', field, "`{}` is {}, which is none of its values", field,
              static_cast<int>(value));
}

models::Model open_files(const models::Family& family, const ModelOptions& options) {
  const auto files = family.find({.model = options.model,
                                  .base = options.base,
                                  .fallback = options.fallback,
                                  .parts = options.parts,
                                  .guided = options.guided});
  return family.open(files, {.convention = options.convention, .activations = options.activations});
}

models::Model open_model(const models::Family& family, const ModelOptions& options) {
  check_devices(family, options);
  check_known(options.activations, "activations");
  check_known(options.linears, "linears");
  check_known(options.attention, "attention");
  check_known(options.text_encoder_linears, "text_encoder_linears");
  check_known(options.tuning, "tuning");
  check_known(options.convention, "convention");
  for (const KeepRule& rule : options.keep) check_known(rule.where, "keep");
  // With `automatic` this can be checked only after a run.
  check_value(!options.require_int8 || options.linears == Linears::int8 ||
                  options.linears == Linears::automatic,
              "require_int8",
              "`require_int8`: the networks' linears were requested in {}; leave `linears` out",
              options.linears == Linears::fake ? "fake INT8" : "floating point");
  check_value(options.text_encoder_linears != Linears::automatic, "text_encoder_linears",
              "`text_encoder_linears`: auto is not available for a text encoder, expected INT8, "
              "floating point or fake INT8");
  return open_files(family, options);
}

std::shared_ptr<const ModelFacts> facts_of(const models::Family& family,
                                           const ModelOptions& options, const models::Model& model,
                                           models::PictureDefaults defaults) {
  return std::make_shared<const ModelFacts>(
      ModelFacts{.family = family,
                 .defaults = std::move(defaults),
                 .options = options,
                 .sizes = model.sizes,
                 .latent_channels = model.decoder->latent_channels(),
                 .networks = model.networks.size(),
                 .shares = shares_of(family, device_list(options.device).size()),
                 .tokenize = model.tokenize});
}

}  // namespace

Session::Session(const SessionOptions& options, const std::atomic<bool>& stop)
    : Session(options, stop, {}, models::family_of(options.model.model)) {}

Session::Session(const SessionOptions& options, const std::atomic<bool>& stop,
                 std::vector<std::unique_ptr<Backend>> backends, const models::Family& family)
    : options_(options),
      stop_(stop),
      family_(family),
      dtype_(options.model.activations == Activations::bf16 ? DType::bf16 : DType::f32),
      model_(open_model(family, options.model)),
      facts_(facts_of(family, options.model, model_,
                      models::defaults_of(family, {options.model.model, options.model.base,
                                                   options.model.fallback}))) {
  check_usual_size();
  backends_ = backends.empty() ? backends_for(options.model) : std::move(backends);
  for (const auto& backend : backends_) backend->pool().stop_when(&stop_);
  add_denoisers();
  const OpenedLoras loras =
      lora_files_.open(options.model.loras, family_, model_, backend().pool());
  count_work();
  plan_within(usual_extent());
  merge(loras);
  merged_ = options.model.loras;
}

Session::Session(const SessionOptions& options, const std::atomic<bool>& stop,
                 const models::Family& family, models::Model model)
    : options_(options),
      stop_(stop),
      family_(family),
      backends_(backends_for(options.model)),
      dtype_(options.model.activations == Activations::bf16 ? DType::bf16 : DType::f32),
      model_(std::move(model)),
      facts_(facts_of(family, options.model, model_, models::defaults_of(family, {}))) {
  check_devices(family, options.model);
  add_denoisers();
  options_.model.keep = {{.part = "", .where = Residency::device}};
  count_work();
  plan_within(usual_extent());
  uint64_t seed = 0;
  for (PartStore* store : {text_.get(), decoder_.get()}) store->rules().random = ++seed;
  for (const auto& device : denoisers_) {
    for (const auto& [network, store] : device->stores) store->rules().random = seed + 1 + network;
  }
}

Session::~Session() {
  denoisers_.clear();
  text_.reset();
  decoder_.reset();
}

// Files are opened a second time for a network that both devices have.
void Session::add_denoisers() {
  const auto& shares = facts_->shares;
  octet::check(shares.size() == backends_.size(), "session: {} backends for {} devices",
               backends_.size(), shares.size());
  std::set<const models::Network*> taken;
  for (size_t device = 0; device < shares.size(); ++device) {
    Backend& backend = *backends_[device];
    if (options_.model.require_int8) check_native(backend);
    auto made = std::make_unique<Denoiser>(context_on(backend), family_, shares[device]);
    for (const size_t branch : made->branches) {
      const size_t network = family_.branches[branch].network;
      if (network >= model_.networks.size() || made->networks.contains(network)) continue;
      models::Network* here = model_.networks[network].get();
      if (!taken.insert(here).second) {
        check_value(!options_.model.model.empty(), "device",
                    "device {}: both devices need the {} network, and random weights are only on "
                    "one; name one device, or a `model`",
                    options_.model.device, family_.networks[network].name);
        if (again_.networks.empty()) again_ = open_files(family_, options_.model);
        here = again_.networks[network].get();
      }
      made->networks.emplace(network, here);
    }
    denoisers_.push_back(std::move(made));
  }
}

void Session::for_each_network(const std::function<void(PartStore&)>& visit) {
  for (const auto& device : denoisers_) {
    for (const auto& [network, store] : device->stores) visit(*store);
  }
}

std::string Session::device_text() const {
  std::string text = backends_.front()->description();
  if (device_count() > 1) text += " and " + backends_.back()->description();
  return text;
}

MemoryUse Session::memory() const {
  MemoryUse sum;
  for (const auto& backend : backends_) {
    const MemoryUse use = backend->memory();
    sum.used += use.used;
    sum.peak += use.peak;
    sum.reserved_peak += use.reserved_peak;
  }
  return sum;
}

// The default comes from a file: a user who names no size is not told that theirs is wrong.
void Session::check_usual_size() const {
  const auto [width, height] = facts_->defaults.size;
  const int side = model_.sizes.token_side;
  octet::check(facts_->defaults.path.empty() || (width % side == 0 && height % side == 0),
               "{}: size is {} x {}, expected multiples of {}, the side of this model's tokens",
               facts_->defaults.path, width, height, side);
}

EngineInfo Session::info() const {
  EngineInfo info;
  info.family = family_.name;
  info.device = device_text();
  for (size_t i = 0; i < model_.networks.size(); ++i) {
    info.networks.emplace_back(family_.networks[i].name);
  }
  for (const models::Branch& branch : family_.branches) info.branches.emplace_back(branch.name);
  info.takes_negative = models::sees_text(family_.branches, models::BranchText::negative);
  info.plan = plan_;
  for (const auto& device : denoisers_) info.work_bytes += device->work.of(device->planned);
  for (const DevicePlan& plan : device_plans_) {
    info.buffer_bytes += static_cast<uint64_t>(plan.buffers) * plan.buffer_bytes;
    info.streamed_bytes += plan.streamed_bytes;
    info.read_bytes += plan.read_bytes;
    info.planned_bytes += plan.taken;
  }
  info.limit_bytes = options_.model.max_memory;
  info.context_bytes = backends_.front()->memory_limit().unavailable;
  info.available_bytes = available_bytes_;
  info.used_bytes = memory().used;
  info.loras = options_.model.loras;
  info.token_side = model_.sizes.token_side;
  info.size = facts_->defaults.size;
  for (const models::Preset& preset : facts_->defaults.presets) {
    info.presets.push_back({preset.name, preset.official_name, preset.steps});
  }
  return info;
}

void Session::tell(const OnRenderProgress& told, const RenderProgress& progress) const {
  if (stop_.load(std::memory_order_relaxed) || (told && !told(progress))) {
    throw Cancelled("stopped on request");
  }
}

void Session::load(PartStore& store, const OnRenderProgress& progress) {
  store.load([&](uint64_t done, uint64_t total) {
    tell(progress, {.stage = Stage::load,
                    .done = static_cast<int64_t>(done),
                    .total = static_cast<int64_t>(total)});
  });
}

void Session::load(const OnRenderProgress& progress) {
  load(*text_, progress);
  for_each_network([&](PartStore& store) { load(store, progress); });
  load(*decoder_, progress);
}

// --- LoRAs ---

void Session::merge(const OpenedLoras& loras) {
  for (const auto& device : denoisers_) {
    for (const auto& [index, network] : device->networks) {
      std::vector<std::string> identities;
      network->source().set_change(change_of(loras, index, identities));
      device->stores.at(index)->rules().changes = std::move(identities);
    }
  }
  loras_ = loras;
}

void Session::use_loras(const std::vector<Lora>& requests, const OnRenderProgress& progress) {
  const OpenedLoras before = loras_,
                    after = lora_files_.open(requests, family_, model_, backend().pool());
  std::vector<Lora> merged_before = std::exchange(merged_, requests);
  if (after == before) return;
  // A LoRA may change the linears that made them.
  for (const auto& device : denoisers_) device->preparations.forget();
  merge(after);
  try {
    for (const auto& device : denoisers_) {
      for (const auto& [index, store] : device->stores) {
        const auto is_changed = [&, network = index](const nn::LinearSpec& spec) {
          return changes(before, after, network, spec);
        };
        store->reload(is_changed, [&](uint64_t done, uint64_t total) {
          tell(progress, {.stage = Stage::load,
                          .done = static_cast<int64_t>(done),
                          .total = static_cast<int64_t>(total)});
        });
      }
    }
    if (is_stopped()) throw Cancelled("stopped on request");
  } catch (...) {
    // Some linears have the new LoRAs by now: all networks are loaded again when they are needed.
    for_each_network([](PartStore& store) { store.drop(); });
    merge(before);
    merged_ = std::move(merged_before);
    throw;
  }
}

void Session::set_loras(const std::vector<Lora>& requests, const OnRenderProgress& progress) {
  use_loras(requests, progress);
  options_.model.loras = requests;
}

// --- pictures ---

RenderReport Session::render(const Job& job, const SessionCallbacks& callbacks) {
  job.check_is_for(facts_);
  fit(job);
  // The model's own LoRAs are not opened again; files of a request's may have been replaced.
  if (job.request.loras || merged_ != options_.model.loras) {
    use_loras(loras_of(job), callbacks.progress);
  }
  return Rendering(*this, job, callbacks).run();
}

void Session::warm_up(PictureSize size, bool previews, const OnRenderProgress& progress) {
  constexpr int kSteps = 3;  // the third is replayed from a recording
  load(progress);
  const models::PictureDefaults& defaults = facts_->defaults;
  models::ScheduleRequest schedule{.preset = defaults.presets.front(),
                                   .size = models::size_or_default(size, defaults),
                                   .steps = kSteps,
                                   .convention = facts_->options.convention};
  if (model_.networks.size() < family_.networks.size()) schedule.guidance = {1};
  SessionCallbacks callbacks{.progress = progress};
  if (previews) callbacks.preview = [](const Preview&) {};
  render(*make_job(facts_, {}, asked_as_is(family_, std::move(schedule), "warm up")), callbacks);
}

}  // namespace octet::engine
