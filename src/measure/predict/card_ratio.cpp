#include "measure/predict/card_ratio.h"

#include "measure/predict/calibration.h"

namespace octet::predict {
namespace {

constexpr int64_t kLargestSide = int64_t{1} << 24;

bool is_a_side(int64_t value) { return value > 0 && value <= kLargestSide; }

// Microseconds of the whole linear without pause; 0: not measured.
double measured_linear(const Card& card, Path path, int64_t m, int64_t n, int64_t k) {
  if (card.id != measured().card) return 0;
  for (const MeasuredLinear& row : measured().linears) {
    if (!row.product && row.path == path && row.is_of(m, n, k)) return row.load_us;
  }
  return 0;
}

}  // namespace

std::optional<LinearRatio> int8_ratio(std::string_view device, int64_t m, int64_t n, int64_t k) {
  const Card* card = find_card(device);
  if (!card || card->int8 == 0 || !is_a_side(m) || !is_a_side(n) || !is_a_side(k))
    return std::nullopt;
  const Coefficients& c = calibrated();
  LinearRatio ratio;
  ratio.card = card->name;
  // All of a ratio is measured, or nothing: a shape is measured by every path.
  ratio.measured = measured_linear(*card, Path::int8, m, n, k) > 0;
  const auto linear_us = [&](Path path) {
    return ratio.measured ? measured_linear(*card, path, m, n, k)
                          : linear_time(*card, c, path, Load::steady, m, n, k).us;
  };
  const double int8 = linear_us(Path::int8);
  ratio.bf16 = linear_us(Path::bf16) / int8;
  ratio.fp8 = linear_us(Path::fp8) / int8;
  ratio.nf4 = linear_us(Path::nf4) / int8;
  ratio.fake = linear_us(Path::fake) / int8;
  return ratio;
}

}  // namespace octet::predict
