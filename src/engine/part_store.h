// Keeps the weights of one part of a model where a plan says, and brings them to the device when
// the part runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/packed_unit.h"
#include "models/part.h"
#include "nn/context.h"
#include "octet/model_options.h"
#include "weights/converted_cache.h"
#include "weights/fingerprint.h"
#include "weights/loader.h"

namespace octet::engine {

// Receives bytes of files; may throw to stop.
using OnLoad = std::function<void(uint64_t done, uint64_t total)>;

struct LoadRules {
  // With a seed, weights are random numbers and no file is read: what would be read again in each
  // use waits with the host.
  std::optional<uint64_t> random;
  bool int8 = true;   // for large linears
  bool fake = false;  // dequantize them: Linears::fake
  // Exceptions, large linears that run in floating point: LoadOptions::floating.
  std::function<bool(const nn::LinearSpec&)> floating = {};
  int64_t rotation = 0;         // of weights quantized while loading: LoadOptions::rotation
  bool keep_converted = false;  // cache INT8 codes made while loading on disk
  // Identities of the LoRAs merged by the part's source, for that cache.
  std::vector<std::string> changes = {};
};

class WeightStream;

class PartStore {
 public:
  // The part and the context outlive the store. A place for each unit; Residency::streamed: its
  // files, each time.
  PartStore(models::Part& part, nn::Context ctx, std::vector<Residency> places);
  PartStore(models::Part& part, nn::Context ctx, Residency where);
  ~PartStore();
  PartStore(const PartStore&) = delete;
  PartStore& operator=(const PartStore&) = delete;

  models::Part& part() const { return part_; }
  // Whether all of it stays on the device.
  bool stays() const;
  // And whether its runs need nothing else.
  bool stays_for_runs() const;
  LoadRules& rules() { return rules_; }

  // For calibration: the first `count` units stay on the device once they are there.
  void set_resident_units(int64_t count) { resident_ = count; }

  // Whether bytes of the next unit of a run that comes from its files are asked for while one runs.
  void set_reads_ahead(bool reads_ahead) { reads_ahead_ = reads_ahead; }
  // Whose run comes after this one's, which brings its first such unit; null: nobody knows.
  void set_next(const PartStore* next) { next_ = next; }

  // Brings everything that stays, on the device or with the host, to its place, if it is not there
  // yet. If it throws, nothing is kept.
  void load(const OnLoad& progress = {});
  bool is_loaded() const { return loaded_; }
  // Brings one unit to the device, as a run does; the unit before it that does not stay makes room.
  void bring(int64_t unit);
  // After the part has run: releases its device memory, unless it stays there.
  void end_use();
  // Releases everything.
  void drop();

  // Loads the linears for which `is_changed` holds again, from the part's source as it is now.
  void reload(const std::function<bool(const nn::LinearSpec&)>& is_changed, const OnLoad& progress);

  // Of all weights. Known once they have been read; after reload() it takes a pass over the files.
  const weights::Fingerprint& fingerprint();

  // --- for a WeightStream, which brings units of runs into memory of its own ---

  // Null: bring() takes memory itself.
  void set_stream(WeightStream* stream) { stream_ = stream; }
  // Units of a run that do not stay on the device, in their order.
  std::vector<int64_t> streamed_units() const;
  Residency place_of(int64_t unit) const { return places_[static_cast<size_t>(unit)]; }
  // Of a unit that waits with the host or is on the device: as it is kept.
  size_t bytes_of(int64_t unit) const { return packed_[static_cast<size_t>(unit)].bytes(); }
  // Begins to bring a unit to a piece of the device's memory, where the part will find it.
  Transfer send(int64_t unit, std::byte* to, uint64_t most_bytes);
  // Points the unit there beforehand, if it waits with the host: then later sends change nothing of
  // it, and what was recorded finds it.
  void attach(int64_t unit, std::byte* at);
  // Whatever is there leaves.
  void detach(int64_t unit) { part_.release(unit); }

 private:
  weights::LoadOptions load_options() const;
  PackedUnit::Visit visit_of(int64_t unit) const {
    return [this, unit](nn::WeightVisitor& visitor) { part_.visit(unit, visitor); };
  }
  void load_unit(int64_t unit);
  void read_unit(int64_t unit);
  void read_ahead(int64_t unit) const;
  void read_ahead_after(int64_t unit) const;
  void release_passing();
  void make_random(const OnLoad& progress);
  // From `found`, of `cache`, where there is one; what is converted is kept there.
  void load(const OnLoad& progress, weights::ConvertedCache* cache,
            const std::shared_ptr<const Checkpoint>& found);
  // Where a loaded unit belongs.
  void keep_unit(int64_t unit);
  void add_fingerprint(int64_t unit, const weights::Fingerprint& of_unit);

  models::Part& part_;
  nn::Context ctx_;
  std::vector<Residency> places_;
  LoadRules rules_;
  int64_t resident_ = 0;
  bool loaded_ = false;
  std::vector<bool> on_device_;     // by unit
  std::optional<int64_t> passing_;  // the one that makes room for the next
  Buffer passing_memory_;           // its own
  std::vector<PackedUnit> packed_;  // by unit: those that stay, if not all do
  std::shared_ptr<const Checkpoint>
      converted_;  // what was found in the cache, for those that do not
  WeightStream* stream_ = nullptr;
  bool reads_ahead_ = false;
  const PartStore* next_ = nullptr;
  std::vector<std::optional<weights::Fingerprint>> of_units_;  // those read so far
  std::optional<weights::Fingerprint> sum_;
};

}  // namespace octet::engine
