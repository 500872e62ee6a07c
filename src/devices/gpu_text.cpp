#include "devices/gpu_text.h"

#include <fmt/format.h>

namespace octet {

std::string gpu_kernel_text(int major, int minor, size_t wgmma_tiles, size_t mma_tiles) {
  // Only sm_90a has wgmma: neither older nor newer GPUs do.
  const bool has_wgmma = major == 9 && minor == 0 && wgmma_tiles > 0;
  if (!has_wgmma) return fmt::format("mma.sync, the best of {} tiles for each shape", mma_tiles);
  return fmt::format("wgmma + TMA, and mma.sync; the best of {} tiles for each shape",
                     wgmma_tiles + mma_tiles);
}

}  // namespace octet
