#include "engine/session.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backend/gemm_tuning.h"
#include "backend/host_backend.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "devices/select.h"
#include "engine/rendering.h"
#include "engine/residency.h"
#include "models/footprint.h"
#include "nn/linear_list.h"

namespace octet::engine {
namespace {

// For a text encoder that is quantized as it is loaded. Some of its channels are a hundred times as
// large as the others, and a row has one scale, set by its largest value.
constexpr int64_t kTextRotation = 256;

std::unique_ptr<Backend> backend_for(const ModelOptions& options) {
  return select_backend(
      {.device = options.device, .threads = options.threads, .tune = options.tuning});
}

// A number that a program made into an enumerator.
template <class Enum>
void check_known(Enum value, const char* field) {
  check_value(*word_of(value) != '\0', field, "`{}` is {}, which is none of its values", field,
              static_cast<int>(value));
}

models::Model open_model(const models::Family& family, const ModelOptions& options) {
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
  const auto files = family.find({.model = options.model,
                                  .base = options.base,
                                  .fallback = options.fallback,
                                  .parts = options.parts,
                                  .guided = options.guided});
  return family.open(files, {.convention = options.convention, .activations = options.activations});
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
                 .tokenize = model.tokenize});
}

}  // namespace

Session::Session(const SessionOptions& options, const std::atomic<bool>& stop)
    : Session(options, stop, nullptr, models::family_of(options.model.model)) {}

Session::Session(const SessionOptions& options, const std::atomic<bool>& stop,
                 std::unique_ptr<Backend> backend, const models::Family& family)
    : options_(options),
      stop_(stop),
      family_(family),
      dtype_(options.model.activations == Activations::bf16 ? DType::bf16 : DType::f32),
      model_(open_model(family, options.model)),
      facts_(facts_of(family, options.model, model_,
                      models::defaults_of(family, {options.model.model, options.model.base,
                                                   options.model.fallback}))),
      kept_{{}, {family.branches.size(), model_.networks.size()}} {
  check_usual_size();
  backend_ = backend ? std::move(backend) : backend_for(options.model);
  backend_->pool().stop_when(&stop_);
  if (options.model.require_int8) check_native(*backend_);
  const OpenedLoras loras =
      lora_files_.open(options.model.loras, family_, model_, backend_->pool());
  make_plan();
  merge(loras);
  merged_ = options.model.loras;
}

Session::Session(const SessionOptions& options, const std::atomic<bool>& stop,
                 const models::Family& family, models::Model model)
    : options_(options),
      stop_(stop),
      family_(family),
      backend_(backend_for(options.model)),
      dtype_(options.model.activations == Activations::bf16 ? DType::bf16 : DType::f32),
      model_(std::move(model)),
      facts_(facts_of(family, options.model, model_, models::defaults_of(family, {}))),
      kept_{{}, {family.branches.size(), model_.networks.size()}} {
  if (options.model.require_int8) check_native(*backend_);
  options_.model.keep = {{.part = "", .where = Residency::device}};
  make_plan();
  uint64_t seed = 0;
  for (PartStore* store : {text_.get(), decoder_.get()}) store->rules().random = ++seed;
  for (const auto& network : networks_) network->rules().random = ++seed;
}

Session::~Session() {
  kept_.preparations.forget();
  networks_.clear();
  text_.reset();
  decoder_.reset();
}

// The default comes from a file: a user who names no size is not told that theirs is wrong.
void Session::check_usual_size() const {
  const auto [width, height] = facts_->defaults.size;
  const int side = model_.sizes.token_side;
  octet::check(facts_->defaults.path.empty() || (width % side == 0 && height % side == 0),
               "{}: size is {} x {}, expected multiples of {}, the side of this model's tokens",
               facts_->defaults.path, width, height, side);
}

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
      if (backend_->tuning().is_faster_in_bf16(tokens, spec.n(), spec.k)) {
        faster.insert({spec.n(), spec.k});
      }
    }
  }
  if (faster.empty()) return {};
  return [faster](const nn::LinearSpec& spec) {
    return spec.large && faster.contains({spec.n(), spec.k});
  };
}

void Session::make_plan() {
  const Linears linears = options_.model.linears;
  // Plans are for bf16; in f32 the product would be slower than INT8 anyway.
  const bool chooses = linears == Linears::automatic && dtype_ == DType::bf16;
  const auto floating = chooses ? faster_in_floating() : nullptr;
  const bool shared = keeps_data_on_host(*backend_);
  std::vector<PartNeed> needs;
  const auto add = [&](models::Part& part, const models::RunAs& how, bool is_network) {
    const models::WeightBytes bytes = models::weight_bytes(part, how, backend_.get());
    needs.push_back({.name = std::string(part.name()),
                     .bytes = bytes.all,
                     .largest_unit = bytes.largest_unit,
                     .runs_often = is_network,
                     .once = options_.once && !is_network && &part != model_.decoder.get()});
  };
  const Linears of_text = options_.model.text_encoder_linears;
  const models::RunAs text_as{.dtype = dtype_, .int8 = of_text == Linears::int8};
  const models::RunAs networks_as{.dtype = dtype_,
                                  .int8 = linears == Linears::int8 || linears == Linears::automatic,
                                  .floating = floating,
                                  .scores = nn::scores_for(options_.model.attention)};
  add(*model_.text_encoder, text_as, false);
  double of_networks = 0;
  for (const auto& network : model_.networks) {
    add(*network, networks_as, true);
    of_networks += static_cast<double>(needs.back().bytes);
  }
  add(*model_.decoder, {.dtype = dtype_, .int8 = false}, false);

  work_ = WorkBytes(model_, networks_as, text_as);
  const double free_host = free_memory().value_or(FreeMemory{}).bytes;
  const uint64_t limit = options_.model.max_memory;
  available_bytes_ = backend_->free_memory().value_or(static_cast<uint64_t>(free_host));
  if (limit > 0 && (available_bytes_ == 0 || limit < available_bytes_)) available_bytes_ = limit;
  // A fifth of the host's memory is left for what is not counted.
  plan_ = plan_residency(needs, options_.model.keep,
                         {.device = available_bytes_,
                          .host = static_cast<uint64_t>(0.8 * free_host),
                          .shared = shared,
                          .work = work_.usual()});
  // A full GPU reports an error; Linux would kill the process.
  const bool stay = std::all_of(plan_.begin() + 1, plan_.end() - 1, [](const PartPlace& place) {
    return place.where == Residency::device;
  });
  if (shared && stay) check_free_memory("denoising", of_networks);

  const auto store = [&](models::Part& part, size_t place) {
    return std::make_unique<PartStore>(part, context(), plan_[place].where);
  };
  text_ = store(*model_.text_encoder, 0);
  text_->rules().int8 = of_text != Linears::floating;
  text_->rules().fake = of_text == Linears::fake;
  text_->rules().rotation = kTextRotation;
  for (size_t i = 0; i < model_.networks.size(); ++i) {
    networks_.push_back(store(*model_.networks[i], 1 + i));
    networks_.back()->rules().int8 = linears != Linears::floating;
    networks_.back()->rules().fake = linears == Linears::fake;
    networks_.back()->rules().floating = floating;
    networks_.back()->rules().keep_converted = options_.model.cache_weights;
  }
  decoder_ = store(*model_.decoder, plan_.size() - 1);
  decoder_->rules().int8 = false;
}

EngineInfo Session::info() const {
  EngineInfo info;
  info.family = family_.name;
  info.device = backend_->description();
  for (size_t i = 0; i < model_.networks.size(); ++i) {
    info.networks.emplace_back(family_.networks[i].name);
  }
  for (const models::Branch& branch : family_.branches) info.branches.emplace_back(branch.name);
  info.takes_negative = models::sees_text(family_.branches, models::BranchText::negative);
  info.plan = plan_;
  info.work_bytes = work_.usual();
  info.available_bytes = available_bytes_;
  info.used_bytes = backend_->memory().used;
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
  for (const auto& network : networks_) load(*network, progress);
  load(*decoder_, progress);
}

double Session::free_bytes() const {
  const auto at_hand = backend_->free_memory();
  return at_hand ? static_cast<double>(*at_hand) : free_memory().value_or(FreeMemory{}).bytes;
}

bool Session::has_room_to_batch(size_t count, const Job& job) const {
  models::Extent extent = job.extent();
  extent.batch = static_cast<int64_t>(count);
  return free_bytes() > static_cast<double>(work_.of(extent));
}

// --- LoRAs ---

void Session::merge(const OpenedLoras& loras) {
  for (size_t i = 0; i < networks_.size(); ++i) {
    std::vector<std::string> identities;
    model_.networks[i]->source().set_change(change_of(loras, i, identities));
    networks_[i]->rules().changes = std::move(identities);
  }
  loras_ = loras;
}

void Session::use_loras(const std::vector<Lora>& requests, const OnRenderProgress& progress) {
  const OpenedLoras before = loras_,
                    after = lora_files_.open(requests, family_, model_, backend_->pool());
  std::vector<Lora> merged_before = std::exchange(merged_, requests);
  if (after == before) return;
  kept_.preparations.forget();  // a LoRA may change the linears that made them
  merge(after);
  try {
    for (size_t i = 0; i < networks_.size(); ++i) {
      const auto is_changed = [&](const nn::LinearSpec& spec) {
        return changes(before, after, i, spec);
      };
      networks_[i]->reload(is_changed, [&](uint64_t done, uint64_t total) {
        tell(progress, {.stage = Stage::load,
                        .done = static_cast<int64_t>(done),
                        .total = static_cast<int64_t>(total)});
      });
    }
    if (is_stopped()) throw Cancelled("stopped on request");
  } catch (...) {
    // Some linears have the new LoRAs by now: all networks are loaded again when they are needed.
    for (const auto& network : networks_) network->drop();
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
