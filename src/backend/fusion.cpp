#include "backend/fusion.h"

#include "base/error.h"

namespace octet {

const FusionRow& traits_of(Fusion fusion) {
  const auto index = static_cast<size_t>(fusion);
  check(index < kFusionCount, "fusion number {} is not in the list of {}", index, kFusionCount);
  return kFusions[index];
}

std::string_view name_of(Fusion fusion) { return traits_of(fusion).name; }

Fusion fusion_named(std::string_view name) {
  std::string names;
  for (const FusionRow& row : kFusions) {
    if (row.name == name) return row.fusion;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  fail("'{}' is no fusion, expected one of {}", name, names);
}

int64_t output_columns(Fusion fusion, int64_t n) { return traits_of(fusion).gated ? n / 2 : n; }

}  // namespace octet
