#include "engine/device_parts.h"

#include <algorithm>

namespace octet::engine {

PartNeed need_of(models::Part& part, const models::RunAs& how, const Backend* device) {
  PartNeed need{.name = std::string(part.name()), .units = {}};
  for (int64_t unit = 0; unit < part.unit_count(); ++unit) {
    need.units.push_back({models::unit_bytes(part, unit, how, device), unit >= part.pass_units()});
  }
  return need;
}

std::vector<PartNeed> DeviceParts::needs(const Backend* device) const {
  std::vector<PartNeed> needs;
  const auto add = [&](models::Part& part, const models::RunAs& how) -> PartNeed& {
    PartNeed& need = needs.emplace_back(need_of(part, how, device));
    need.once = once;
    return need;
  };
  if (text_as) add(*model.text_encoder, *text_as);
  for (const auto& [index, network] : networks) {
    PartNeed& need = add(*network, networks_as);
    for (const size_t branch : branches) {
      if (family.branches[branch].network == index) ++need.visits;
    }
    need.visits = std::max(need.visits, 1);
  }
  if (text_as) add(*model.decoder, {.dtype = networks_as.dtype, .int8 = false}).once = false;
  return needs;
}

WorkBytes DeviceParts::work(uint64_t of_ops) const {
  std::vector<models::Network*> its;
  for (const auto& [index, network] : networks) its.push_back(network);
  return WorkBytes(model, its, networks_as, text_as, of_ops);
}

MemoryAtHand DeviceParts::memory(uint64_t device, uint64_t host, const WorkBytes& work,
                                 const models::Extent& extent) const {
  constexpr uint64_t kLanding = uint64_t{256} << 20;  // see cuda/uploads.h
  MemoryAtHand memory{
      .device = device, .host = host, .work = work.of_steps(extent), .landing = kLanding};
  if (text_as && !once) {
    memory.other_work = std::max(work.of_text(extent.text_tokens), work.least_of_decoding(extent));
  }
  return memory;
}

}  // namespace octet::engine
