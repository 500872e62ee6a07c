#include "cuda/attention/flash_table.h"

#include <vector>

#include "base/error.h"
#include "base/never_destroyed.h"
#include "cuda/attention/flash.h"

namespace octet::cuda {
namespace {

std::vector<FlashKernel> make_kernels() {
  std::vector<FlashKernel> kernels;
#if OCTET_TILES_HOPPER
  for (size_t i = 0; i < std::size(kHopperFlashTiles); ++i) {
    kernels.emplace_back(kHopperFlashTiles[i], hopper_flash_code()[i]);
  }
#endif
  for (size_t i = 0; i < std::size(kFlashTiles); ++i) {
    kernels.emplace_back(kFlashTiles[i], flash_code()[i]);
  }
  return kernels;
}

std::string name_of(const FlashTile& tile) {
  return fmt::format("flash_{}_{}x{}_s{}{}", tile.head_dim, tile.rows, tile.keys, tile.stages,
                     tile.int8 ? "_int8" : "");
}

std::string name_of(const HopperFlashTile& tile) {
  return fmt::format("flash90_{}_{}x{}_s{}{}{}", tile.head_dim, tile.rows(), tile.keys, tile.stages,
                     tile.cluster > 1 ? fmt::format("_c{}", tile.cluster) : "",
                     tile.int8_values ? "_int8_full"
                     : tile.int8      ? "_int8"
                                      : "");
}

}  // namespace

bool has_aligned_rows(const ConstTensorView& view) {
  const bool one_row = view.shape[0] == 1;
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 &&
         (one_row || view.row_stride() * (bits_of(view.dtype) / 8) % 16 == 0);
}

FlashKernel::FlashKernel(const FlashTile& tile_, const void* code_)
    : name(name_of(tile_)),
      tile(tile_),
      code(code_),
      head_dim(tile_.head_dim),
      rows(tile_.rows),
      keys(tile_.keys),
      shared_bytes(tile_.shared_bytes()),
      int8(tile_.int8),
      int8_values(false) {}

FlashKernel::FlashKernel(const HopperFlashTile& tile_, const void* code_)
    : name(name_of(tile_)),
      tile(tile_),
      code(code_),
      head_dim(tile_.head_dim),
      rows(tile_.rows()),
      keys(tile_.keys),
      shared_bytes(tile_.shared_bytes()),
      int8(tile_.int8),
      int8_values(tile_.int8_values) {}

std::span<const FlashKernel> flash_kernels() {
  static const auto& kernels = never_destroyed<std::vector<FlashKernel>>(make_kernels());
  return kernels;
}

const FlashKernel& find_flash(std::string_view name) {
  std::string names;
  for (const FlashKernel& kernel : flash_kernels()) {
    if (kernel.name == name) return kernel;
    names += kernel.name + ", ";
  }
  fail("attention: there is no kernel {}; expected one of {}{} or {}", name, names, kCudnn,
       kUnfused);
}

std::string FlashKernel::unsuitable(const DeviceTraits& device) const {
  if (hopper() != nullptr && device.architecture() != 90) {
    return fmt::format("it runs only on sm_90, this GPU is sm_{}", device.architecture());
  }
  // A block can use all of a multiprocessor's shared memory except 1 KB, which each block takes in
  // addition to its own.
  const auto* small = std::get_if<FlashTile>(&tile);
  const int blocks = small == nullptr ? 1 : small->blocks;
  const int needed = blocks * shared_bytes + (blocks - 1) * 1024;
  if (needed > device.shared_bytes_per_block) {
    return fmt::format("it needs {} bytes of shared memory, there are {}", needed,
                       device.shared_bytes_per_block);
  }
  return "";
}

std::string FlashKernel::refusal(const AttentionArgs& args, const DeviceTraits& device) const {
  if (args.out.dtype != DType::bf16) return "its results are BF16";
  if (args.is_int8() != int8) return int8 ? "it multiplies INT8" : "it multiplies BF16";
  if (args.has_int8_values() != int8_values) {
    return int8_values ? "its values are codes" : "its values are BF16";
  }
  if ((hopper() != nullptr || int8) && args.head_dim() != head_dim) {
    return fmt::format("its heads have {} channels", head_dim);
  }
  if (args.head_dim() % 8 != 0) return "it takes heads whose channels are a multiple of 8";
  if (args.head_dim() > head_dim) return "its heads are smaller";
  for (const ConstTensorView& view : {args.q, args.k, args.v, ConstTensorView(args.out)}) {
    if (!has_aligned_rows(view)) return "it needs rows at multiples of 16 bytes";
  }
  if (int8 && !has_aligned_rows(args.k_scales)) return "it needs scales at multiples of 16 bytes";
  constexpr int64_t kMost = int64_t{1} << 30, kMostHeads = 65535;
  if (args.rows() > kMost || args.keys() > kMost || args.heads > kMostHeads) {
    return "it takes at most 2^30 rows and keys and 65535 heads";
  }
  if (int8_values && args.kv_heads * args.v_scales.row_stride() > kMost) {
    return "it takes at most 2^30 scales of values";
  }
  return unsuitable(device);
}

}  // namespace octet::cuda
