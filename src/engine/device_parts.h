// What one device is asked to run of a model, as residency plans see it: no device need be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/residency.h"
#include "engine/work_bytes.h"
#include "models/family.h"
#include "models/footprint.h"

namespace octet::engine {

// As `device` packs it, or without padding.
PartNeed need_of(models::Part& part, const models::RunAs& how, const Backend* device = nullptr);

struct DeviceParts {
  // nn::Context's, in budgets too small for whole passes.
  static constexpr int64_t kRowsAtOnce = 1024;

  models::Model& model;
  const models::Family& family;
  std::map<size_t, models::Network*> networks;  // by the family's numbers
  std::vector<size_t> branches;                 // likewise, that it evaluates
  models::RunAs networks_as;
  // Of a device that has the text encoder and the decoder as well.
  std::optional<models::RunAs> text_as;
  bool once = false;  // for a single picture

  // The text encoder, networks, the decoder; as `device` packs weights, or without padding.
  std::vector<PartNeed> needs(const Backend* device = nullptr) const;
  // `of_ops`: WorkBytes. Parts are asked while none of their weights is loaded.
  WorkBytes work(uint64_t of_ops = models::kOpsBytes) const;
  // What a device of so many bytes has for pictures of that extent.
  MemoryAtHand memory(uint64_t device, uint64_t host, const WorkBytes& work,
                      const models::Extent& extent) const;
};

}  // namespace octet::engine
