// What `octet devices` says of GPUs, by their compute capability.
#include "devices/gpu_text.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(GpuText, HopperMultipliesByWgmma) {
  EXPECT_EQ(gpu_kernel_text(9, 0, 7, 20),
            "wgmma + TMA, and mma.sync; the best of 27 tiles for each shape");
}

TEST(GpuText, OthersByMmaSync) {
  for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {8, 6}, {8, 9}, {10, 0}, {12, 0}}) {
    EXPECT_EQ(gpu_kernel_text(major, minor, 7, 20), "mma.sync, the best of 20 tiles for each shape")
        << major << minor;
  }
}

TEST(GpuText, HopperToo_WhenTheBuildHasNoTilesOfIt) {
  EXPECT_EQ(gpu_kernel_text(9, 0, 0, 20), "mma.sync, the best of 20 tiles for each shape");
}

}  // namespace
}  // namespace octet
