#include "engine/noise.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "base/ranges.h"

namespace octet::engine {
namespace {

uint32_t low_word(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high_word(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

// ln(x) for a normal number x > 0, to about an ulp. x = m 2^e with m in [sqrt(1/2), sqrt(2)), and
// ln(m) = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: the first term left out is below 1e-17.
double logarithm(double x) {
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  auto m = std::bit_cast<double>((bits & kMantissa) | (uint64_t{1023} << 52));  // in [1, 2)
  if (m >= std::numbers::sqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int term = 23; term >= 3; term -= 2) sum = (sum + 1.0 / term) * square;
  const double log_m = 2 * s + 2 * s * sum;
  return exponent * std::numbers::ln2 + log_m;
}

struct Direction {
  double cosine;
  double sine;
};

// For an angle in [0, pi/4]. Taylor series: the first term left out is below 1e-17.
Direction small_direction(double angle) {
  const double square = angle * angle;
  double cosine = 1;
  for (int n = 16; n >= 2; n -= 2) cosine = 1 - cosine * square / (n * (n - 1));
  double sine = 1;
  for (int n = 17; n >= 3; n -= 2) sine = 1 - sine * square / (n * (n - 1));
  return {cosine, sine * angle};
}

// Of the angle (word + 1/2) / 2^32 turns. Three bits give the octant; odd ones are measured from
// their far end, so that the polynomials see at most an eighth of a turn.
Direction direction(uint32_t word) {
  const uint32_t octant = word >> 29;
  double part = (static_cast<double>(word & 0x1fff'ffffu) + 0.5) * 0x1p-29;
  if (octant % 2 == 1) part = 1 - part;
  const auto [cosine, sine] = small_direction(part * (std::numbers::pi / 4));
  switch (octant) {
    case 0: return {cosine, sine};
    case 1: return {sine, cosine};
    case 2: return {-sine, cosine};
    case 3: return {-cosine, sine};
    case 4: return {-cosine, -sine};
    case 5: return {-sine, -cosine};
    case 6: return {sine, -cosine};
    default: return {cosine, -sine};
  }
}

// Two words to two independent normal values. The half keeps the logarithm away from 0, and bounds
// the values by sqrt(2 ln 2^33) = 6.77.
void box_muller(uint32_t length_word, uint32_t angle_word, float* pair) {
  const double uniform = (static_cast<double>(length_word) + 0.5) * 0x1p-32;
  const double length = std::sqrt(-2 * logarithm(uniform));
  const Direction d = direction(angle_word);
  pair[0] = static_cast<float>(length * d.cosine);
  pair[1] = static_cast<float>(length * d.sine);
}

std::array<float, 4> noise_block(uint64_t block, uint64_t seed, uint64_t image) {
  const PhiloxCounter words =
      philox4x32({low_word(block), high_word(block), low_word(image), high_word(image)},
                 {low_word(seed), high_word(seed)});
  std::array<float, 4> values;
  box_muller(words[0], words[1], &values[0]);
  box_muller(words[2], words[3], &values[2]);
  return values;
}

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xd2511f53} * counter[0];
    const uint64_t product1 = uint64_t{0xcd9e8d57} * counter[2];
    counter = {high_word(product1) ^ counter[1] ^ key[0], low_word(product1),
               high_word(product0) ^ counter[3] ^ key[1], low_word(product0)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

void fill_noise(std::span<float> values, uint64_t seed, uint64_t image, uint64_t first) {
  size_t done = 0;
  while (done < values.size()) {
    const uint64_t element = first + done;
    const std::array<float, 4> block = noise_block(element / 4, seed, image);
    for (uint64_t i = element % 4; i < 4 && done < values.size(); ++i) values[done++] = block[i];
  }
}

std::vector<float> make_noise(uint64_t seed, uint64_t image, size_t count, ThreadPool* pool) {
  constexpr size_t kAtOnce = 8192;  // elements, about a millisecond
  std::vector<float> values(count);
  for_ranges(pool, count, kAtOnce, [&](size_t first, size_t some) {
    fill_noise(std::span(values).subspan(first, some), seed, image, first);
  });
  return values;
}

}  // namespace octet::engine
