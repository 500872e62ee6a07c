// Keeps the weights of one part of a model where a plan says, and brings them to the device when
// the part runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/host_weights.h"
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
  // With a seed, weights are random numbers and no file is read. For parts that stay on the device.
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

class PartStore {
 public:
  // The part and the context outlive the store.
  PartStore(models::Part& part, nn::Context ctx, Residency where);
  ~PartStore();
  PartStore(const PartStore&) = delete;
  PartStore& operator=(const PartStore&) = delete;

  models::Part& part() const { return part_; }
  Residency where() const { return where_; }
  LoadRules& rules() { return rules_; }

  // For streamed parts: the first `count` units stay on the device once they are there.
  void set_resident_units(int64_t count) { resident_ = count; }

  // Brings everything that stays to its place, if it is not there yet. If it throws, nothing is
  // kept.
  void load(const OnLoad& progress = {});
  bool is_loaded() const { return loaded_; }
  // Brings one unit to the device, as a run does; units that do not stay make room.
  void bring(int64_t unit);
  // After the part has run: releases its device memory, unless it stays there.
  void end_use();
  // Releases everything.
  void drop();

  // Loads the linears for which `is_changed` holds again, from the part's source as it is now.
  void reload(const std::function<bool(const nn::LinearSpec&)>& is_changed, const OnLoad& progress);

  // Of all weights. Known once they have been read; after reload() it takes a pass over the files.
  const weights::Fingerprint& fingerprint();

 private:
  weights::LoadOptions load_options() const;
  void load_unit(int64_t unit);
  void make_random(const OnLoad& progress);
  void load_resident(const OnLoad& progress);
  // From `found`, of `cache`, where there is one; what is converted is kept there.
  void load_resident(const OnLoad& progress, weights::ConvertedCache* cache,
                     const std::shared_ptr<const Checkpoint>& found);
  void load_host(const OnLoad& progress);

  models::Part& part_;
  nn::Context ctx_;
  Residency where_;
  LoadRules rules_;
  int64_t resident_ = 0;
  bool loaded_ = false;
  std::vector<bool> on_device_;
  std::vector<HostWeights> host_;
  std::vector<std::optional<weights::Fingerprint>> of_units_;  // those streamed so far
  std::optional<weights::Fingerprint> sum_;
};

}  // namespace octet::engine
