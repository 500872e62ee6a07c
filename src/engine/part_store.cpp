#include "engine/part_store.h"

#include <algorithm>
#include <utility>

#include "backend/host_backend.h"
#include "engine/weight_stream.h"
#include "weights/random_weights.h"
#include "weights/read_ahead.h"

namespace octet::engine {
namespace {

using weights::Fingerprint;
using weights::WeightSource;

// Passes on only the linears that are chosen, such as those to load again.
class ChosenLinears : public nn::WeightVisitor {
 public:
  ChosenLinears(nn::WeightVisitor& next, const std::function<bool(const nn::LinearSpec&)>& chosen)
      : next_(next), chosen_(chosen) {}

  void linear(nn::Linear& into, const nn::LinearSpec& spec) override {
    if (chosen_(spec)) next_.linear(into, spec);
  }
  void conv(nn::Conv&, const nn::ConvSpec&) override {}
  void vector(nn::Vector&, const std::string&, int64_t) override {}
  void table(nn::Table&, const std::string&, int64_t, int64_t) override {}

 private:
  nn::WeightVisitor& next_;
  const std::function<bool(const nn::LinearSpec&)>& chosen_;
};

// Counts the bytes of files read so far, for progress.
class LoadProgress {
 public:
  LoadProgress(const OnLoad& told, uint64_t total) : told_(told), total_(total) {
    if (told_) told_(0, total_);
  }
  void add(uint64_t bytes) {
    done_ += bytes;
    if (told_) told_(std::min(done_, total_), total_);
  }

 private:
  const OnLoad& told_;
  uint64_t total_, done_ = 0;
};

// The fingerprint that loading would give, without loading.
class FingerprintPass : public nn::WeightVisitor {
 public:
  FingerprintPass(const WeightSource& source, ThreadPool& pool) : source_(source), pool_(pool) {}

  void linear(nn::Linear&, const nn::LinearSpec& spec) override {
    for (const auto& part : weights::stored_parts(source_, spec)) add(*part);
    if (!spec.bias) return;
    for (const auto& part : weights::layout_in(source_, spec)) add(part.name + ".bias");
  }
  void conv(nn::Conv&, const nn::ConvSpec& spec) override {
    add(spec.name + ".weight");
    add(spec.name + ".bias");
  }
  void vector(nn::Vector&, const std::string& name, int64_t) override { add(name); }
  void table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) override {
    add(*source_.weight(name.substr(0, name.rfind(".weight")), rows, columns));
  }

  const Fingerprint& sum() const { return sum_; }

 private:
  void add(const weights::StoredWeight& weight) {
    for (const auto& tensor : weight.tensors()) sum_.add(tensor.name, tensor.bytes, pool_);
    weight.finish_reading();
  }
  void add(const std::string& name) {
    sum_.add(source_.full_name(name), source_.bytes(name), pool_);
  }

  const WeightSource& source_;
  ThreadPool& pool_;
  Fingerprint sum_;
};

uint64_t file_bytes(const WeightSource& source, models::Part& part) {
  weights::CheckpointCheck present(source);
  part.visit_all(present);
  return present.bytes();
}

}  // namespace

PartStore::PartStore(models::Part& part, nn::Context ctx, std::vector<Residency> places)
    : part_(part),
      ctx_{.backend = ctx.backend, .dtype = ctx.dtype, .stop = ctx.stop},
      places_(std::move(places)) {
  const auto units = static_cast<size_t>(part_.unit_count());
  octet::check(places_.size() == units, "store of {}: {} places for {} units", part_.name(),
               places_.size(), units);
  on_device_.resize(units);
  packed_.resize(units);
  of_units_.resize(units);
  part_.set_bring([this](int64_t unit) { bring(unit); });
}

PartStore::PartStore(models::Part& part, nn::Context ctx, Residency where)
    : PartStore(part, ctx, std::vector<Residency>(static_cast<size_t>(part.unit_count()), where)) {}

PartStore::~PartStore() {
  part_.set_bring({});
  part_.release_all();
}

bool PartStore::stays() const {
  return std::ranges::all_of(places_, [](Residency place) { return place == Residency::device; });
}

bool PartStore::stays_for_runs() const { return streamed_units().empty(); }

std::vector<int64_t> PartStore::streamed_units() const {
  std::vector<int64_t> streamed;
  for (int64_t unit = 0; unit < part_.pass_units(); ++unit) {
    if (place_of(unit) != Residency::device) streamed.push_back(unit);
  }
  return streamed;
}

const Fingerprint& PartStore::fingerprint() {
  if (!sum_) {
    FingerprintPass pass(part_.source(), ctx_.backend.pool());
    part_.visit_all(pass);
    sum_ = pass.sum();
  }
  return *sum_;
}

weights::LoadOptions PartStore::load_options() const {
  return {.dtype = ctx_.dtype,
          .int8 = rules_.int8,
          .fake = rules_.fake,
          .floating = rules_.floating,
          .rotation = rules_.rotation};
}

// INT8 codes made here are cached for later loads, which read them instead of the original weights.
// Not if some linears stay in floating point: these would be read from the codes that a run without
// such linears has cached.
void PartStore::load(const OnLoad& progress) {
  if (loaded_) return;
  const bool any_stays =
      std::ranges::any_of(places_, [](Residency place) { return place != Residency::streamed; });
  if (!any_stays) return;
  try {
    if (rules_.random) {
      make_random(progress);
    } else {
      std::unique_ptr<weights::ConvertedCache> cache;
      std::shared_ptr<const Checkpoint> found;
      if (rules_.int8 && !rules_.floating && (rules_.keep_converted || !rules_.changes.empty())) {
        cache = std::make_unique<weights::ConvertedCache>(
            weights::default_converted_cache(), part_.source(),
            [this](nn::WeightVisitor& visitor) { part_.visit_all(visitor); }, rules_.changes);
        found = cache->find();
      }
      try {
        load(progress, cache.get(), found);
      } catch (const Error& error) {
        if (!found || !weights::ConvertedCache::is_damaged(*found, error)) throw;
        drop();
        load(progress, cache.get(), nullptr);
      }
    }
    loaded_ = true;
  } catch (...) {
    drop();
    throw;
  }
}

void PartStore::make_random(const OnLoad& progress) {
  weights::WeightCount count(ctx_.dtype, rules_.int8);
  part_.visit_all(count);
  LoadProgress told(progress, static_cast<uint64_t>(count.parameters()));
  std::ranges::replace(places_, Residency::streamed, Residency::host);  // there are no files
  weights::RandomWeights make(
      ctx_.backend, {.seed = *rules_.random,
                     .dtype = ctx_.dtype,
                     .int8 = rules_.int8,
                     .progress = [&](int64_t made) { told.add(static_cast<uint64_t>(made)); }});
  for (int64_t unit = 0; unit < part_.unit_count(); ++unit) {
    part_.visit(unit, make);
    keep_unit(unit);
  }
  sum_ = Fingerprint();
}

// All threads read one weight after the other into the device's memory, which converts and packs
// them; what is to wait with the host comes back from there, while the next are read. (Both ways of
// the bus run at full speed at the same time, and the host need not know how weights are packed.)
void PartStore::load(const OnLoad& progress, weights::ConvertedCache* cache,
                     const std::shared_ptr<const Checkpoint>& found) {
  WeightSource source = part_.source();
  weights::LoadOptions options = load_options();
  // Codes are cached when all have been made.
  const bool reads_all =
      std::ranges::none_of(places_, [](Residency place) { return place == Residency::streamed; });
  if (found) {
    source.add_converted(found, "");
  } else if (cache != nullptr && reads_all) {
    options.converted = [cache](const auto& weight, const auto& codes, const auto& made_from) {
      cache->keep(weight, codes, made_from);
    };
  }
  LoadProgress told(progress, file_bytes(source, part_));
  options.progress = [&](uint64_t bytes) { told.add(bytes); };
  converted_ = found;
  for (int64_t unit = 0; unit < part_.unit_count(); ++unit) {
    if (place_of(unit) == Residency::streamed) continue;
    weights::Loader loader(source, ctx_.backend, options);
    part_.visit(unit, loader);
    add_fingerprint(unit, loader.fingerprint());
    keep_unit(unit);
  }
  if (cache != nullptr && !found && reads_all) cache->commit();
}

void PartStore::add_fingerprint(int64_t unit, const Fingerprint& of_unit) {
  of_units_[static_cast<size_t>(unit)] = of_unit;
  Fingerprint sum;
  for (const auto& each : of_units_) {
    if (!each) return;
    sum.add(*each);
  }
  if (converted_) sum.add(weights::ConvertedCache::made_from(*converted_));
  sum_ = sum;
}

// What stays as a whole stays as it was loaded. Else each unit is one piece, so that a device's
// memory that is short is not cut into many; a host gives away its pages one by one.
void PartStore::keep_unit(int64_t unit) {
  const auto at = static_cast<size_t>(unit);
  on_device_[at] = place_of(unit) == Residency::device;
  Backend& backend = ctx_.backend;
  if (stays() || (on_device_[at] && keeps_data_on_host(backend))) return;
  const PackedUnit::Visit visit = visit_of(unit);
  const size_t bytes = PackedUnit::bytes_of(visit);
  if (on_device_[at]) {
    packed_[at] = PackedUnit(
        visit, backend.allocate(bytes),
        [&](std::byte* to, const std::byte* from, size_t count) { backend.copy(to, from, count); });
    packed_[at].attach(visit, const_cast<std::byte*>(packed_[at].data()));
    return;
  }
  packed_[at] = PackedUnit(visit, backend.allocate_pinned(bytes),
                           [&](std::byte* to, const std::byte* from, size_t count) {
                             backend.copy_to_pinned(to, from, count);
                           });
  part_.release(unit);
}

// A run asks for units in ascending order: the one before that does not stay makes room.
void PartStore::bring(int64_t unit) {
  const auto at = static_cast<size_t>(unit);
  if (on_device_[at]) return;
  if (stream_ != nullptr && unit < part_.pass_units()) {
    WeightStream& stream = *stream_;
    return ctx_.backend.unrecorded([this, &stream, unit] {
      if (ctx_.is_stopped()) throw Cancelled("stopped on request");
      stream.need(*this, unit);
    });
  }
  ctx_.backend.unrecorded([this, unit] {
    load_unit(unit);
    read_ahead_after(unit);
  });
}

// Behind the last unit of a run comes the first one of the next run.
void PartStore::read_ahead_after(int64_t unit) const {
  if (!reads_ahead_) return;
  const std::vector<int64_t> own = streamed_units();
  const auto after = std::ranges::upper_bound(own, unit);
  if (after != own.end()) return read_ahead(*after);
  if (next_ == nullptr) return;
  const std::vector<int64_t> others = next_->streamed_units();
  if (!others.empty()) next_->read_ahead(others.front());
}

void PartStore::read_ahead(int64_t unit) const {
  WeightSource source = part_.source();
  if (converted_) source.add_converted(converted_, "");
  weights::ReadAhead ahead(source);
  part_.visit(unit, ahead);
}

void PartStore::release_passing() {
  if (!passing_) return;
  on_device_[static_cast<size_t>(*passing_)] = false;
  part_.release(*std::exchange(passing_, std::nullopt));
  passing_memory_ = {};
}

void PartStore::load_unit(int64_t unit) {
  const auto at = static_cast<size_t>(unit);
  release_passing();
  on_device_[at] = true;
  if (unit >= resident_) passing_ = unit;
  try {
    if (!packed_[at]) return read_unit(unit);
    passing_memory_ = ctx_.backend.allocate(packed_[at].bytes());
    ctx_.backend.wait(send(unit, passing_memory_.data(), packed_[at].bytes()));
    attach(unit, passing_memory_.data());
  } catch (...) {
    on_device_[at] = false;
    passing_.reset();
    part_.release(unit);
    passing_memory_ = {};
    throw;
  }
}

// From its files, to memory of its own.
void PartStore::read_unit(int64_t unit) {
  const auto& known = of_units_[static_cast<size_t>(unit)];
  weights::LoadOptions options = load_options();
  options.fingerprint = !sum_ && !known;
  WeightSource source = part_.source();
  if (converted_) source.add_converted(converted_, "");
  weights::Loader loader(source, ctx_.backend, options);
  part_.visit(unit, loader);
  if (options.fingerprint) add_fingerprint(unit, loader.fingerprint());
}

void PartStore::attach(int64_t unit, std::byte* at) {
  const PackedUnit& packed = packed_[static_cast<size_t>(unit)];
  if (packed) packed.attach(visit_of(unit), at);
}

Transfer PartStore::send(int64_t unit, std::byte* to, uint64_t most_bytes) {
  Backend& backend = ctx_.backend;
  const PackedUnit& packed = packed_[static_cast<size_t>(unit)];
  const auto check_place = [&](size_t bytes) {
    octet::check(bytes <= most_bytes, "{}: unit {} takes {} bytes, and its place has {}",
                 part_.name(), unit, bytes, most_bytes);
  };
  if (packed) {
    check_place(packed.bytes());
    return backend.prefetch(to, packed.data(), packed.bytes());
  }
  read_unit(unit);
  const PackedUnit::Visit visit = visit_of(unit);
  const size_t bytes = PackedUnit::bytes_of(visit);
  check_place(bytes);
  const PackedUnit made(visit, Buffer(to, bytes, [](std::byte*) {}),
                        [&](std::byte* into, const std::byte* from, size_t count) {
                          backend.copy(into, from, count);
                        });
  made.attach(visit, to);
  return {};
}

void PartStore::end_use() { release_passing(); }

void PartStore::drop() {
  part_.release_all();
  std::fill(on_device_.begin(), on_device_.end(), false);
  passing_.reset();
  passing_memory_ = {};
  for (PackedUnit& packed : packed_) packed = {};
  converted_.reset();
  loaded_ = false;
}

void PartStore::reload(const std::function<bool(const nn::LinearSpec&)>& is_changed,
                       const OnLoad& progress) {
  sum_.reset();
  std::fill(of_units_.begin(), of_units_.end(), std::nullopt);
  if (!loaded_) return end_use();
  if (!stays()) {
    drop();
    return load(progress);
  }
  weights::CheckpointCheck present(part_.source());
  ChosenLinears checked(present, is_changed);
  part_.visit_all(checked);
  LoadProgress told(progress, present.bytes());
  weights::LoadOptions options = load_options();
  options.fingerprint = false;
  options.progress = [&](uint64_t bytes) { told.add(bytes); };
  weights::Loader loader(part_.source(), ctx_.backend, options);
  ChosenLinears changed(loader, is_changed);
  part_.visit_all(changed);
}

}  // namespace octet::engine
