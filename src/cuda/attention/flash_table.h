// THE tables of the fused attention kernels, edited by hand; nothing else lists tiles.
#pragma once

#include <span>

#include "cuda/attention/flash_tile.h"
#include "cuda/attention/flash_tile_sm90.h"

namespace octet::cuda {

// clang-format off
// Family sm80, mma.sync. With heads of 256, for the 227 KB of shared memory that Hopper has, the
// 163 KB of A100, and the 99 KB of all others. INT8 takes 97 KB; more keys than 64 would not leave
// enough registers for the fragments of q. Two small blocks where they fit: on the H200 749 us
// instead of 757 with a large one, 4096 tokens in 18 heads of 256.
inline constexpr FlashTile kFlashTiles[] = {
    // head rows keys stages blocks int8
    { 64, 128,  64, 4, 2, false},
    {128, 128,  64, 4, 1, false},
    {256, 128,  64, 4, 1, false},
    {256, 128,  64, 3, 1, false},
    {256, 128,  32, 4, 1, false},
    {256,  64,  32, 4, 1, false},
    {256,  64,  64, 2, 1, false},
    {128, 128, 128, 4, 1, true},
    {256,  64,  64, 4, 2, true},
    {256, 128,  64, 4, 1, true},
};
// Family sm90, wgmma. 128 rows of q, and as many keys as leave room for two stages of both.
inline constexpr HopperFlashTile kHopperFlashTiles[] = {
    // head keys stages warpgroups cluster int8 alternates int8_values
    {256,  80, 2, 2, 2, false, true,  false},
    {256,  80, 2, 2, 1, false, true,  false},  // an odd number of blocks of rows
    {128, 128, 2, 2, 2, false, false, false},
    { 64, 128, 3, 3, 1, false, true,  false},
    {256,  96, 2, 2, 2, true,  true,  false},
    {256,  96, 2, 2, 1, true,  true,  false},
    {128, 128, 2, 2, 1, true,  true,  false},
    {256, 128, 2, 2, 1, true,  true,  true},
    {128, 128, 2, 2, 1, true,  true,  true},
};
// clang-format on

// Their kernels, in the order of the tiles.
std::span<const void* const> flash_code();
std::span<const void* const> hopper_flash_code();

}  // namespace octet::cuda
