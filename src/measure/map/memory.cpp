// What each way takes of a device's memory, from the shapes of the model.
#include <algorithm>
#include <map>

#include "measure/bench/problems.h"
#include "measure/map/map.h"
#include "models/footprint.h"

namespace octet::measure {

std::vector<MapMemory> map_memory(const models::Family& family, const std::vector<int>& sizes,
                                  const std::vector<std::string>& ways, int64_t text_tokens,
                                  const std::vector<MapMemory>& work) {
  std::vector<std::unique_ptr<models::Network>> networks;
  std::vector<models::Network*> all_networks;
  for (size_t i = 0; i < family.networks.size(); ++i) {
    networks.push_back(family.synthetic_network(i, /*layers=*/0));
    all_networks.push_back(networks.back().get());
  }
  std::map<std::pair<int, bool>, uint64_t> counted;  // by pixels and whether it is INT8
  const auto step_bytes = [&](int pixels, bool int8) {
    const int64_t side = pixels / family.sizes.token_side;
    uint64_t& bytes = counted[{pixels, int8}];
    if (bytes > 0) return bytes;
    const models::Extent extent{.grid = {side, side}, .text_tokens = text_tokens};
    return bytes = models::denoising_bytes(all_networks, extent, {.int8 = int8}).all();
  };
  std::vector<MapMemory> all;
  for (const std::string& way : ways) {
    for (const bool alone : {false, true}) {
      if (alone && networks.size() < 2) continue;
      uint64_t bytes = 0;
      for (size_t i = 0; i < (alone ? 1 : networks.size()); ++i) {
        bytes += models::weight_bytes_in(*networks[i], way);
      }
      for (const int pixels : sizes) {
        MapMemory& memory = all.emplace_back();
        memory.way = way;
        memory.alone = alone;
        memory.pixels = pixels;
        memory.weight_bytes = bytes;
        // The step in bf16 represents all others except Octet's own.
        const std::string measured_way = way == measure::kInt8 ? measure::kInt8 : measure::kBf16;
        const auto found = std::find_if(work.begin(), work.end(), [&](const MapMemory& each) {
          return each.pixels == pixels && each.way == measured_way;
        });
        memory.measured = found != work.end();
        memory.work_bytes = memory.measured ? found->work_bytes
                                            : step_bytes(pixels, measured_way == measure::kInt8);
        memory.work_bytes += models::dequantized_bytes_in(*networks[0], way);
        const double needed = static_cast<double>(memory.weight_bytes + memory.work_bytes);
        for (const int card : kMapCards) {
          if (needed <= card * 1e9 - kMapReserve) memory.fits.push_back(card);
        }
      }
    }
  }
  return all;
}

}  // namespace octet::measure
