// What both NEON matmul kernels share: the tile, and the store of its row-major accumulators.
// Everything has internal linkage, because the two files that include this are compiled for
// different CPUs.
#pragma once

#include "cpu/matmul/store_rows.h"
#include "cpu/simd/vec_neon.h"

namespace octet::cpu {
namespace {

constexpr int kTileM = 8;
constexpr int kTileN = 12;

void store(const OutTile& tile) { store_rows<VecNeon, kTileN>(tile); }

}  // namespace
}  // namespace octet::cpu
