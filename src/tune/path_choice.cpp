#include "tune/path_choice.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace octet::tune {
namespace {

// "m512 n4608 k4608 ...": the number behind one of these letters, or nothing.
std::optional<int64_t> size_in_key(std::string_view& key, char letter) {
  if (key.empty() || key.front() != letter) return std::nullopt;
  int64_t size = 0;
  const auto [end, error] = std::from_chars(key.data() + 1, key.data() + key.size(), size);
  if (error != std::errc() || size <= 0) return std::nullopt;
  key.remove_prefix(static_cast<size_t>(end - key.data()));
  if (!key.empty() && key.front() == ' ') key.remove_prefix(1);
  return size;
}

}  // namespace

std::optional<PathTimes> path_times(const GemmPlan& plan) {
  const auto time = [&plan](const char* name) {
    const auto found = plan.reference_us.find(name);
    return found == plan.reference_us.end() ? 0 : found->second;
  };
  const double int8 = time(kInt8Linear), bf16 = time(kBf16Linear);
  if (int8 > 0 && bf16 > 0) return PathTimes{int8, bf16, /*is_mapped=*/true};
  const double quantize = time(kQuantize), unquantized = time(kUnquantized);
  if (plan.us <= 0 || quantize <= 0 || unquantized <= 0) return std::nullopt;
  return PathTimes{plan.us + quantize, unquantized};
}

bool is_faster_in_bf16(const Plans& plans, int64_t m, int64_t n, int64_t k) {
  std::pair<int64_t, int> best = {INT64_MAX, 0};  // distance of m, and how little the times tell
  PathTimes sum;
  for (const auto& [name, plan] : plans) {
    std::string_view key = name;
    const auto of_m = size_in_key(key, 'm'), of_n = size_in_key(key, 'n'),
               of_k = size_in_key(key, 'k');
    if (!of_m || of_n != n || of_k != k) continue;
    const auto times = path_times(plan);
    if (!times) continue;
    const bool is_fused = key.find('+') != key.npos;  // "BF16+swiglu rows"
    const std::pair rank = {std::abs(*of_m - m), times->is_mapped ? 0 : is_fused ? 2 : 1};
    if (rank > best) continue;
    if (rank < best) sum = {};
    best = rank;
    sum.int8_us += times->int8_us;
    sum.bf16_us += times->bf16_us;
  }
  return sum.bf16_us < sum.int8_us;
}

}  // namespace octet::tune
