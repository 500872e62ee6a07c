// The fused attention kernels as the host sees them. No CUDA header here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "backend/ops.h"
#include "cuda/attention/flash_tile.h"
#include "cuda/attention/flash_tile_sm90.h"
#include "cuda/device_traits.h"
#include "tensor/tensor.h"

namespace octet::cuda {

class Device;

struct FlashKernel {
  std::string name;  // "flash_256_128x64_s4", "flash90_256_128x80_s2_c2"
  std::variant<FlashTile, HopperFlashTile> tile;
  const void* code;  // takes FlashParams; Hopper's takes HopperFlashParams and FlashMaps
  int head_dim, rows, keys, shared_bytes;  // of the tile
  bool int8;                               // q and k are INT8 codes
  bool int8_values;                        // v is codes, too

  FlashKernel(const FlashTile& tile, const void* code);
  FlashKernel(const HopperFlashTile& tile, const void* code);
  const HopperFlashTile* hopper() const { return std::get_if<HopperFlashTile>(&tile); }

  // Why it cannot run at all on a device with these traits; empty if it can.
  std::string unsuitable(const DeviceTraits& device) const;
  // Why it cannot run this problem there; empty if it can.
  std::string refusal(const AttentionArgs& args, const DeviceTraits& device) const;
};

// Whether all rows begin at multiples of 16 bytes.
bool has_aligned_rows(const ConstTensorView& view);

// In order: of kernels that take a problem and are expected to be equally fast, the first is used.
std::span<const FlashKernel> flash_kernels();
// Throws Error with all names if there is none of this name.
const FlashKernel& find_flash(std::string_view name);
// Names for paths without a kernel of ours: cuDNN's, and two separate products.
inline constexpr std::string_view kCudnn = "cudnn";
inline constexpr std::string_view kUnfused = "unfused";

// Launches them, with the memory through which those for Hopper share tiles.
class FlashLauncher {
 public:
  explicit FlashLauncher(Device& device) : device_(device) {}

  // Only what was not refused. The device is current.
  void launch(const FlashKernel& kernel, const AttentionArgs& args);
  // The one that takes a problem and is probably the fastest; null if none takes it.
  const FlashKernel* choose(const AttentionArgs& args) const;

 private:
  // How Hopper's kernels divide the work, see work_list.cuh.
  struct Shares {
    int tiles_per_head, k_steps, workers, whole_tiles;
    double time;  // of the busiest worker, in keys that a block meets
  };
  Shares share(const HopperFlashTile& tile, const AttentionArgs& args) const;
  void launch_sm80(const FlashKernel& kernel, const FlashTile& tile, const AttentionArgs& args);
  void launch_sm90(const FlashKernel& kernel, const HopperFlashTile& tile,
                   const AttentionArgs& args);

  Device& device_;
  Buffer partials_, arrivals_;
};

}  // namespace octet::cuda
