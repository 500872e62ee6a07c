#include "cuda/attention/flash_table.h"

#include <vector>

#include "base/error.h"
#include "cuda/attention/flash.h"

namespace octet::cuda {
namespace {

int64_t stride_bytes(const ConstTensorView& view) { return view.row_stride() * 2; }

bool is_aligned(const ConstTensorView& view) {
  const bool one_row = view.shape[0] == 1;
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 &&
         (one_row || stride_bytes(view) % 16 == 0);
}

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
  return fmt::format("flash_{}_{}x{}_s{}", tile.head_dim, tile.rows, tile.keys, tile.stages);
}

std::string name_of(const HopperFlashTile& tile) {
  return fmt::format("flash90_{}_{}x{}_s{}{}", tile.head_dim, tile.rows(), tile.keys, tile.stages,
                     tile.cluster > 1 ? fmt::format("_c{}", tile.cluster) : "");
}

}  // namespace

FlashKernel::FlashKernel(const FlashTile& tile_, const void* code_)
    : name(name_of(tile_)),
      tile(tile_),
      code(code_),
      head_dim(tile_.head_dim),
      rows(tile_.rows),
      keys(tile_.keys),
      shared_bytes(tile_.shared_bytes()) {}

FlashKernel::FlashKernel(const HopperFlashTile& tile_, const void* code_)
    : name(name_of(tile_)),
      tile(tile_),
      code(code_),
      head_dim(tile_.head_dim),
      rows(tile_.rows()),
      keys(tile_.keys),
      shared_bytes(tile_.shared_bytes()) {}

std::span<const FlashKernel> flash_kernels() {
  static const std::vector<FlashKernel> kernels = make_kernels();
  return kernels;
}

const FlashKernel& find_flash(std::string_view name) {
  std::string names;
  for (const FlashKernel& kernel : flash_kernels()) {
    if (kernel.name == name) return kernel;
    names += kernel.name + ", ";
  }
  fail("attention: there is no kernel {}; expected one of {}{}", name, names, kUnfused);
}

std::string FlashKernel::refusal(const AttentionArgs& args, const DeviceTraits& device) const {
  if (args.q.dtype != DType::bf16) return "it multiplies BF16";
  if (hopper() != nullptr) {
    if (device.architecture() != 90) {
      return fmt::format("it runs on sm_90 alone, this GPU is sm_{}", device.architecture());
    }
    if (args.head_dim() != head_dim) return fmt::format("its heads have {} channels", head_dim);
  }
  if (args.head_dim() % 8 != 0) return "it takes heads of multiples of 8 channels";
  if (args.head_dim() > head_dim) return "its heads are smaller";
  for (const ConstTensorView& view : {args.q, args.k, args.v, ConstTensorView(args.out)}) {
    if (!is_aligned(view)) return "it wants rows at multiples of 16 bytes";
  }
  constexpr int64_t kMost = int64_t{1} << 30, kMostHeads = 65535;
  if (args.rows() > kMost || args.keys() > kMost || args.heads > kMostHeads) {
    return "it takes no more than 2^30 rows and keys and 65535 heads";
  }
  if (shared_bytes > device.shared_bytes_per_block) {
    return fmt::format("it needs {} bytes of shared memory, there are {}", shared_bytes,
                       device.shared_bytes_per_block);
  }
  return "";
}

}  // namespace octet::cuda
