#include "predict/card_ratio.h"

#include "predict/calibration.h"

namespace octet::predict {
namespace {

constexpr int64_t kLargestSide = int64_t{1} << 24;

bool is_a_side(int64_t value) { return value > 0 && value <= kLargestSide; }

// Microseconds without pause; 0: not measured.
double measured_product(const Card& card, Path path, int64_t m, int64_t n, int64_t k) {
  if (card.id != measured().card) return 0;
  for (const MeasuredLinear& row : measured().linears) {
    if (row.path == path && row.m == m && row.n == n && row.k == k) return row.load_us;
  }
  return 0;
}

}  // namespace

std::optional<LinearRatio> int8_ratio(std::string_view device, int64_t m, int64_t n, int64_t k) {
  const Card* card = find_card(device);
  if (!card || !is_a_side(m) || !is_a_side(n) || !is_a_side(k)) return std::nullopt;
  const Coefficients& c = calibrated();
  LinearRatio ratio;
  ratio.card = card->name;
  const double measured_int8 = measured_product(*card, Path::int8, m, n, k);
  const double measured_bf16 = measured_product(*card, Path::bf16, m, n, k);
  const double measured_fp8 = measured_product(*card, Path::fp8, m, n, k);
  ratio.measured = measured_int8 > 0 && measured_bf16 > 0 && measured_fp8 > 0;
  // What is measured replaces the product within the linear.
  const auto linear_us = [&](Path path, double product_us) {
    const double whole = linear_time(*card, c, path, Load::steady, m, n, k).us;
    if (!ratio.measured || product_us <= 0) return whole;
    return whole - product_time(*card, c, path, Load::steady, m, n, k).us + product_us;
  };
  const double int8 = linear_us(Path::int8, measured_int8);
  ratio.bf16 = linear_us(Path::bf16, measured_bf16) / int8;
  ratio.fp8 = linear_us(Path::fp8, measured_fp8) / int8;
  ratio.nf4 = linear_us(Path::nf4, 0) / int8;
  ratio.fake = linear_us(Path::fake, 0) / int8;
  return ratio;
}

}  // namespace octet::predict
