#include "measure/ceilings.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "backend/gemm_tuning.h"
#include "backend/host_backend.h"
#include "measure/timing.h"

namespace octet::measure {
namespace {

constexpr int kRepeats = 7;

double median_of(const std::function<double()>& measured) {
  std::vector<double> values;
  for (int i = 0; i < kRepeats; ++i) values.push_back(measured());
  return timing_of(std::move(values)).median;
}

}  // namespace

Ceilings measure_ceilings(Backend& backend) {
  constexpr size_t kDeviceBytes = size_t{256} << 20, kHostBytes = size_t{64} << 20;
  GemmTuning& tuning = backend.tuning();
  Ceilings ceilings;
  ceilings.int8 = median_of([&] { return tuning.int8_ceiling(); });
  ceilings.bf16 = median_of([&] { return tuning.bf16_ceiling(); });
  const Buffer from = backend.allocate(keeps_data_on_host(backend) ? kHostBytes : kDeviceBytes);
  const Buffer to = backend.allocate(from.bytes());
  const auto copy = [&] { backend.copy(to.data(), from.data(), from.bytes()); };
  copy();  // a host's pages are there after this
  const double us = median_of([&] { return tuning.time_us(copy); });
  ceilings.copy = us > 0 ? 2.0 * static_cast<double>(from.bytes()) / us * 1e6 : 0;
  return ceilings;
}

double ceiling_share(const OpWork& work, double us, DType dtype, const Ceilings& ceilings) {
  const double floating = work.operations - work.int8_operations;
  const double bf16 = dtype == DType::bf16 ? ceilings.bf16 : 0;
  double products = 0;  // seconds
  for (const auto& [operations, speed] :
       {std::pair(work.int8_operations, ceilings.int8), std::pair(floating, bf16)}) {
    if (operations <= 0) continue;
    if (speed <= 0) return 0;
    products += operations / speed;
  }
  const double moving = ceilings.copy > 0 ? work.bytes / ceilings.copy : 0;
  return us > 0 ? std::max(products, moving) / (us * 1e-6) : 0;
}

}  // namespace octet::measure
