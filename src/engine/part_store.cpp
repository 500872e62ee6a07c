#include "engine/part_store.h"

#include <algorithm>
#include <utility>

#include "weights/random_weights.h"

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

PartStore::PartStore(models::Part& part, nn::Context ctx, Residency where)
    : part_(part), ctx_{ctx.backend, ctx.dtype}, where_(where) {
  const auto units = static_cast<size_t>(part_.unit_count());
  on_device_.resize(units);
  host_.resize(units);
  of_units_.resize(units);
  part_.set_bring([this](int64_t unit) { bring(unit); });
}

PartStore::~PartStore() {
  part_.set_bring({});
  part_.release_all();
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

void PartStore::load(const OnLoad& progress) {
  if (loaded_ || where_ == Residency::streamed) return;
  try {
    if (rules_.random) {
      make_random(progress);
    } else if (where_ == Residency::device) {
      load_resident(progress);
    } else {
      load_host(progress);
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
  weights::RandomWeights make(
      ctx_.backend, {.seed = *rules_.random,
                     .dtype = ctx_.dtype,
                     .int8 = rules_.int8,
                     .progress = [&](int64_t made) { told.add(static_cast<uint64_t>(made)); }});
  part_.visit_all(make);
  std::fill(on_device_.begin(), on_device_.end(), true);
  sum_ = Fingerprint();
}

// INT8 codes made here are cached for later loads, which read them instead of the original weights.
// Not if some linears stay in floating point: these would be read from the codes that a run without
// such linears has cached.
void PartStore::load_resident(const OnLoad& progress) {
  std::unique_ptr<weights::ConvertedCache> cache;
  std::shared_ptr<const Checkpoint> found;
  if (rules_.int8 && !rules_.floating && (rules_.keep_converted || !rules_.changes.empty())) {
    cache = std::make_unique<weights::ConvertedCache>(
        weights::default_converted_cache(), part_.source(),
        [this](nn::WeightVisitor& visitor) { part_.visit_all(visitor); }, rules_.changes);
    found = cache->find();
  }
  try {
    load_resident(progress, cache.get(), found);
  } catch (const Error& error) {
    if (!found || !weights::ConvertedCache::is_damaged(*found, error)) throw;
    drop();
    load_resident(progress, cache.get(), nullptr);
  }
}

void PartStore::load_resident(const OnLoad& progress, weights::ConvertedCache* cache,
                              const std::shared_ptr<const Checkpoint>& found) {
  WeightSource source = part_.source();
  weights::LoadOptions options = load_options();
  if (found) {
    source.add_converted(found, "");
  } else if (cache != nullptr) {
    options.converted = [cache](const auto& weight, const auto& codes, const auto& made_from) {
      cache->keep(weight, codes, made_from);
    };
  }
  LoadProgress told(progress, file_bytes(source, part_));
  options.progress = [&](uint64_t bytes) { told.add(bytes); };
  weights::Loader loader(source, ctx_.backend, options);
  for (int64_t unit = 0; unit < part_.unit_count(); ++unit) {
    on_device_[static_cast<size_t>(unit)] = true;
    part_.visit(unit, loader);
  }
  sum_ = loader.fingerprint();
  if (found) sum_->add(weights::ConvertedCache::made_from(*found));
  if (cache != nullptr && !found) cache->commit();
}

void PartStore::load_host(const OnLoad& progress) {
  LoadProgress told(progress, file_bytes(part_.source(), part_));
  weights::LoadOptions options = load_options();
  options.progress = [&](uint64_t bytes) { told.add(bytes); };
  Fingerprint sum;
  for (int64_t unit = 0; unit < part_.unit_count(); ++unit) {
    const auto at = static_cast<size_t>(unit);
    weights::Loader loader(part_.source(), ctx_.backend, options);
    part_.visit(unit, loader);
    sum.add(loader.fingerprint());
    host_[at].keep(ctx_.backend, [&](nn::WeightVisitor& visitor) { part_.visit(unit, visitor); });
    part_.release(unit);
  }
  sum_ = sum;
}

// A run asks for units in ascending order: earlier ones that do not stay make room.
void PartStore::bring(int64_t unit) {
  const auto at = static_cast<size_t>(unit);
  if (on_device_[at]) return;
  for (size_t other = static_cast<size_t>(std::max<int64_t>(resident_, 0));
       other < on_device_.size(); ++other) {
    if (!on_device_[other]) continue;
    on_device_[other] = false;
    part_.release(static_cast<int64_t>(other));
  }
  on_device_[at] = true;
  try {
    load_unit(unit);
  } catch (...) {
    on_device_[at] = false;
    part_.release(unit);
    throw;
  }
}

void PartStore::load_unit(int64_t unit) {
  const auto at = static_cast<size_t>(unit);
  const auto visit = [&](nn::WeightVisitor& visitor) { part_.visit(unit, visitor); };
  if (host_[at].is_kept()) return host_[at].restore(ctx_.backend, visit);
  weights::LoadOptions options = load_options();
  options.fingerprint = !sum_ && !of_units_[at];
  weights::Loader loader(part_.source(), ctx_.backend, options);
  visit(loader);
  if (sum_ || of_units_[at]) return;
  of_units_[at] = loader.fingerprint();
  Fingerprint sum;
  for (const auto& of_unit : of_units_) {
    if (!of_unit) return;
    sum.add(*of_unit);
  }
  sum_ = sum;
}

void PartStore::end_use() {
  if (where_ == Residency::device && loaded_) return;
  for (size_t unit = static_cast<size_t>(resident_); unit < on_device_.size(); ++unit) {
    if (!on_device_[unit]) continue;
    on_device_[unit] = false;
    part_.release(static_cast<int64_t>(unit));
  }
}

void PartStore::drop() {
  part_.release_all();
  std::fill(on_device_.begin(), on_device_.end(), false);
  for (HostWeights& host : host_) host = {};
  loaded_ = false;
}

void PartStore::reload(const std::function<bool(const nn::LinearSpec&)>& is_changed,
                       const OnLoad& progress) {
  sum_.reset();
  std::fill(of_units_.begin(), of_units_.end(), std::nullopt);
  if (!loaded_) return end_use();
  if (where_ != Residency::device) {
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
