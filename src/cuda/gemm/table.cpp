#include "cuda/gemm/table.h"

#include <utility>

#include "base/error.h"
#include "base/never_destroyed.h"
#include "cuda/device.h"
#include "cuda/gemm/instances.h"

namespace octet::cuda {
namespace {

template <TileClass C, size_t... kFusion>
void add_rows(std::vector<GemmRow>& rows, std::index_sequence<kFusion...>) {
  constexpr WeightRows kPlain = C == TileClass::hopper ? WeightRows::packed : WeightRows::plain;
  using Kernels = std::span<const void* const>;
  const Kernels packed[] = {gemm_kernels<C, kFusions[kFusion].fusion, WeightRows::packed>()...};
  const Kernels plain[] = {gemm_kernels<C, kFusions[kFusion].fusion, kPlain>()...};
  size_t i = 0;
  for (const auto& tile : tiles_of<C>()) {
    GemmRow& row = rows.emplace_back(tile);
    for (size_t fusion = 0; fusion < kFusionCount; ++fusion) {
      row.packed_kernels[fusion] = packed[fusion][i];
      row.plain_kernels[fusion] = plain[fusion][i];
    }
    ++i;
  }
}

template <TileClass C>
void add_rows(std::vector<GemmRow>& rows) {
  add_rows<C>(rows, std::make_index_sequence<kFusionCount>());
}

std::vector<GemmRow> make_rows() {
  std::vector<GemmRow> rows;
#if OCTET_TILES_HOPPER
  add_rows<TileClass::hopper>(rows);
#endif
#if OCTET_TILES_MEDIUM
  add_rows<TileClass::medium>(rows);
#endif
#if OCTET_TILES_SMALL
  add_rows<TileClass::small>(rows);
#endif
  return rows;
}

std::vector<GemmCandidate> make_candidates() {
  std::vector<GemmCandidate> candidates;
  for (const GemmRow& row : gemm_rows()) {
    candidates.push_back({&row, false, row.name});
    if (row.can_stream) candidates.push_back({&row, true, row.name + "_streamk"});
  }
  return candidates;
}

}  // namespace

GemmRow::GemmRow(const Tile& tile)
    : name(name_of(tile)),
      m(tile.m),
      n(tile.n),
      k(tile.k),
      stages(tile.stages),
      threads(tile.threads()),
      shared_bytes(tile.shared_bytes()),
      can_stream(tile.warps_k == 1),  // warps along k already share a tile; no code does both
      read_bytes(tile.warps_m * tile.warps_n * (tile.warp_m() + tile.warp_n()) * tile.k) {}

GemmRow::GemmRow(const HopperTile& tile)
    : name(name_of(tile)),
      hopper(true),
      m(tile.m),
      n(tile.n),
      k(HopperTile::k),
      stages(tile.stages),
      cluster_m(tile.cluster_m),
      cluster_n(tile.cluster_n),
      threads(tile.threads()),
      shared_bytes(tile.shared_bytes()),
      teams(tile.teams()),
      read_bytes(tile.read_bytes()) {}

std::span<const GemmRow> gemm_rows() {
  static const auto& rows = never_destroyed<std::vector<GemmRow>>(make_rows());
  return rows;
}

std::span<const GemmCandidate> gemm_candidates() {
  static const auto& candidates = never_destroyed<std::vector<GemmCandidate>>(make_candidates());
  return candidates;
}

std::string why_no_kernels(int device) {
  const Active active(device);
  cudaFuncAttributes attributes = {};
  // The small class exists for every architecture that a build is made for.
  const cudaError_t status =
      cudaFuncGetAttributes(&attributes, gemm_rows().back().packed_kernels[0]);
  if (status == cudaSuccess) return "";
  cudaGetLastError();
  return fmt::format("{}; build with -DOCTET_CUDA_ARCHITECTURES=all", cudaGetErrorString(status));
}

const GemmCandidate& find_candidate(const std::string& name) {
  std::string names;
  for (const GemmCandidate& candidate : gemm_candidates()) {
    if (candidate.name == name) return candidate;
    names += (names.empty() ? "" : ", ") + candidate.name;
  }
  fail("'{}' is not a kernel of this build; it has {}", name, names);
}

}  // namespace octet::cuda
