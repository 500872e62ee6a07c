#include "measure/bench/budgeted_networks.h"

#include <algorithm>

#include "backend/host_backend.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "engine/device_parts.h"

namespace octet::measure {
namespace {

double gigabytes(uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

// Each is of use for one picture: what only prepares steps gives way to layers.
std::vector<engine::PartNeed> needs_of(const models::Family& family,
                                       std::span<models::Network* const> networks,
                                       const models::RunAs& how, const Backend& backend) {
  std::vector<engine::PartNeed> needs;
  for (size_t i = 0; i < networks.size(); ++i) {
    needs.push_back(engine::need_of(*networks[i], how, &backend));
    needs.back().once = true;
    needs.back().visits = static_cast<int>(std::ranges::count(
        family.branches, i, [](const models::Branch& branch) { return branch.network; }));
  }
  return needs;
}

uint64_t preparing_bytes(const std::vector<engine::PartNeed>& needs) {
  uint64_t sum = 0;
  for (const engine::PartNeed& part : needs) {
    for (const engine::UnitNeed& unit : part.units) sum += unit.prepares ? unit.bytes : 0;
  }
  return sum;
}

}  // namespace

BudgetedNetworks::BudgetedNetworks(nn::Context& ctx, const models::Family& family,
                                   std::span<models::Network* const> networks,
                                   const models::RunAs& how, const models::Extent& extent,
                                   uint64_t max_memory)
    : ctx_(ctx) {
  Backend& backend = ctx.backend;
  const models::DenoisingBytes step = models::denoising_bytes(networks, extent, how);
  bytes_of_pass_ = step.work;
  const uint64_t of_ops = keeps_data_on_host(backend) ? 0 : models::kOpsBytes;
  const uint64_t of_context = backend.memory_limit().unavailable;
  const uint64_t usable = std::min(backend.free_memory().value_or(max_memory),
                                   max_memory - std::min(max_memory, of_context));
  const std::vector<engine::PartNeed> needs = needs_of(family, networks, how, backend);
  // A fifth of the host's memory is left for what is not counted, as in a session; and what
  // prepares steps, which a session reads from files, waits there, too.
  const auto free_host = static_cast<uint64_t>(0.8 * free_memory().value_or(FreeMemory{}).bytes);
  const uint64_t for_layers = free_host - std::min(free_host, preparing_bytes(needs));
  plan_ = engine::plan_residency(
      needs, {}, {.device = usable, .host = for_layers, .work = step.all() + of_ops});
  check_value(plan_.least + of_context <= max_memory, "max_memory",
              "`max_memory`: {:.2f} GB are too few for a step of this size, which takes {:.2f} GB "
              "at least; allow more, or use a smaller `size`",
              gigabytes(max_memory), gigabytes(plan_.least + of_context));
  if (plan_.least > usable) {
    throw OutOfMemory(
        sentence("bench step: {} has {:.2f} GB free, and a step of this size takes "
                 "{:.2f} GB at least; close programs, or use a smaller `size`",
                 backend.name(), gigabytes(usable), gigabytes(plan_.least)));
  }
  // An engine would read them from its files; random weights have none.
  octet::check(plan_.read_bytes == 0,
               "bench step: {:.2f} GB of layers wait in host memory, which has room for {:.2f} GB; "
               "allow more of the device's memory, or give fewer `layers`",
               gigabytes(plan_.streamed_bytes), gigabytes(for_layers));
  for (size_t i = 0; i < networks.size(); ++i) {
    stores_.push_back(std::make_unique<engine::PartStore>(*networks[i], ctx, plan_.units[i]));
    stores_.back()->rules() = {.random = i + 1, .int8 = how.int8};
  }
  constexpr uint64_t kBetweenTensors = uint64_t{64} << 10;  // their places begin at multiples
  if (plan_.buffers > 0) {
    stream_ = std::make_unique<engine::WeightStream>(backend, plan_.buffers,
                                                     plan_.buffer_bytes + kBetweenTensors);
  }
}

BudgetedNetworks::~BudgetedNetworks() { close(); }

void BudgetedNetworks::load(const std::function<void(int64_t weights)>& made) {
  for (const auto& store : stores_) {
    uint64_t before = 0;
    store->load([&](uint64_t done, uint64_t) {
      made(static_cast<int64_t>(done - std::exchange(before, done)));
    });
  }
}

void BudgetedNetworks::open(bool records) {
  for (const auto& store : stores_) store->end_use();
  if (stream_ == nullptr) return;
  constexpr uint64_t kOfOps = uint64_t{32} << 20;
  ctx_.backend.trim_memory();
  if (records && !keeps_data_on_host(ctx_.backend)) {
    work_ = ctx_.backend.reserve_work(bytes_of_pass_ + kOfOps);
  }
  std::vector<engine::PartStore*> stores;
  for (const auto& store : stores_) stores.push_back(store.get());
  stream_->open(stores);
}

void BudgetedNetworks::close() {
  work_.reset();
  if (stream_ != nullptr) stream_->close();
}

void BudgetedNetworks::expect(size_t network) {
  if (stream_ != nullptr) stream_->expect(store_of(network));
}

void BudgetedNetworks::watch() {
  trace_.emplace();
  watched_since_ = ctx_.backend.mark();
  if (stream_ != nullptr) stream_->set_trace(&*trace_);
}

// What was called last in a pass before it waited for a layer is done when the wait begins.
StepTimeline BudgetedNetworks::timeline(std::span<const Pass> passes) {
  StepTimeline made;
  if (!trace_ || passes.empty()) return made;
  if (stream_ != nullptr) stream_->set_trace(nullptr);
  const engine::StreamTrace trace = *std::exchange(trace_, std::nullopt);
  // From a mark that all others follow: the time back to an earlier one is not promised.
  const auto since = [&](size_t mark) {
    return ctx_.backend.microseconds_between(watched_since_, mark) * 1e-3;
  };
  const double start_ms = since(passes.front().marks.first);
  const auto ms_at = [&](size_t mark) { return since(mark) - start_ms; };
  made.ms = ms_at(passes.back().marks.second);
  for (const Pass& pass : passes) {
    const StepSpan whole{
        .name = pass.name, .begin_ms = ms_at(pass.marks.first), .end_ms = ms_at(pass.marks.second)};
    made.passes.push_back(whole);
    StepSpan run = whole;
    for (const auto& wait : trace.waits) {
      if (wait.store != store_of(pass.network)) continue;
      const double begin = ms_at(wait.begin), end = ms_at(wait.end);
      if (begin < whole.begin_ms || end > whole.end_ms) continue;  // another step's, or pass's
      run.end_ms = begin;
      made.runs.push_back(run);
      run = {.name = pass.name, .unit = wait.unit, .begin_ms = end, .end_ms = whole.end_ms};
      made.wait_ms += end - begin;
    }
    made.runs.push_back(run);
  }
  for (const auto& copy : trace.copies) {
    const StepSpan span{.name = std::string(copy.store->part().name()),
                        .unit = copy.unit,
                        .bytes = copy.store->bytes_of(copy.unit),
                        .begin_ms = ms_at(copy.begin),
                        .end_ms = ms_at(copy.end)};
    if (span.end_ms <= 0 || span.begin_ms >= made.ms) continue;
    made.copies.push_back(span);
    if (span.end_ms > made.ms) continue;  // another step's
    made.copied_bytes += span.bytes;
    made.copy_ms += span.end_ms - span.begin_ms;
  }
  return made;
}

}  // namespace octet::measure
