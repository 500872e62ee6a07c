// Descriptions of matrices for TMA (Hopper).
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace octet::cuda {

inline constexpr int kMapRowBytes = 128;  // of a box, and of wgmma's swizzle

// Why this driver cannot make any; empty if it can.
std::string why_no_tensor_maps();

// Bytes [layers, rows, 128 or more], rows and layers `strides` bytes apart (multiples of 16). A box
// is 128 bytes of `box_rows` rows of `box_layers` layers, in the order of wgmma's 128-byte swizzle.
// Past the end of the tensor a box reads zeros. `what`: for the error.
CUtensorMap make_tensor_map(const char* what, const void* data, std::array<int64_t, 3> sizes,
                            std::array<int64_t, 2> strides, int box_rows, int box_layers = 1);
// Bytes of up to five dimensions, the first of them along rows; `strides` are those of the others.
CUtensorMap make_tensor_map(const char* what, const void* data, std::array<int64_t, 5> sizes,
                            std::array<int64_t, 4> strides, std::array<int, 5> box);
// Without layers.
CUtensorMap make_tensor_map(const char* what, const void* data, std::array<int64_t, 2> sizes,
                            int64_t stride, int box_rows);

}  // namespace octet::cuda
