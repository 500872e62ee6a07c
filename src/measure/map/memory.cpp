// What each way takes of a device's memory, from the shapes of the model.
#include <algorithm>

#include "measure/bench/problems.h"
#include "measure/map/linear.h"
#include "measure/map/map.h"
#include "nn/linear_list.h"
#include "weights/random_weights.h"

namespace octet::measure {
namespace {

// The weights of one network in numbers.
struct NetworkWeights {
  int64_t int8_bytes = 0;     // with large linears in INT8 or FP8: a byte each, F32 scales of rows
  int64_t bf16_bytes = 0;     // all of them in bf16
  int64_t large = 0;          // parameters of large linears
  int64_t largest_large = 0;  // of one of them
  int64_t columns = 0;        // that the large linears of one layer read and write
};

NetworkWeights weights_of_network(const models::Family& family, size_t index) {
  const auto network = family.synthetic_network(index, /*layers=*/0);
  weights::WeightCount int8(DType::bf16, true), bf16(DType::bf16, false);
  NetworkWeights counted;
  for (int64_t unit = 0; unit < network->unit_count(); ++unit) {
    nn::LinearList list;
    network->visit(unit, list);
    network->visit(unit, int8);
    network->visit(unit, bf16);
    int64_t columns = 0;
    for (const nn::LinearSpec& spec : list.linears()) {
      if (!spec.large) continue;
      counted.large += spec.n() * spec.k;
      counted.largest_large = std::max(counted.largest_large, spec.n() * spec.k);
      columns += spec.n() + spec.k;
    }
    counted.columns = std::max(counted.columns, columns);
  }
  counted.int8_bytes = int8.bytes();
  counted.bf16_bytes = bf16.bytes();
  return counted;
}

constexpr int64_t kNf4BlockElements = 64;  // with an F32 factor

int64_t bytes_in_way(const NetworkWeights& weights, const std::string& way) {
  if (way == measure::kBf16) return weights.bf16_bytes;
  if (way != measure::kNf4) return weights.int8_bytes;
  const int64_t large_in_bf16 = 2 * weights.large;
  return weights.bf16_bytes - large_in_bf16 + weights.large / 2 +
         weights.large / kNf4BlockElements * 4;
}

// A weight in bf16 while it is multiplied: of ways that dequantize it.
int64_t scratch_in_way(const NetworkWeights& weights, const std::string& way) {
  const bool dequantizes = way == measure::kNf4 || way == measure::kFakeInt8;
  return dequantizes ? 2 * weights.largest_large : 0;
}

}  // namespace

std::vector<MapMemory> map_memory(const models::Family& family, const std::vector<int>& sizes,
                                  const std::vector<std::string>& ways, int64_t text_tokens,
                                  const std::vector<MapMemory>& work) {
  std::vector<NetworkWeights> networks;
  for (size_t i = 0; i < family.networks.size(); ++i) {
    networks.push_back(weights_of_network(family, i));
  }
  std::vector<MapMemory> all;
  for (const std::string& way : ways) {
    for (const bool alone : {false, true}) {
      if (alone && networks.size() < 2) continue;
      int64_t bytes = 0;
      for (size_t i = 0; i < (alone ? 1 : networks.size()); ++i) {
        bytes += bytes_in_way(networks[i], way);
      }
      for (const int pixels : sizes) {
        MapMemory& memory = all.emplace_back();
        memory.way = way;
        memory.alone = alone;
        memory.pixels = pixels;
        memory.weight_bytes = static_cast<uint64_t>(bytes);
        // The step in bf16 stands for all others but Octet's own.
        const std::string measured_way = way == measure::kInt8 ? measure::kInt8 : measure::kBf16;
        const auto found = std::find_if(work.begin(), work.end(), [&](const MapMemory& each) {
          return each.pixels == pixels && each.way == measured_way;
        });
        const int64_t side = pixels / family.sizes.token_side;
        memory.measured = found != work.end();
        memory.work_bytes =
            memory.measured
                ? found->work_bytes
                : static_cast<uint64_t>((side * side + text_tokens) * networks[0].columns * 2);
        memory.work_bytes += static_cast<uint64_t>(scratch_in_way(networks[0], way));
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
