// The noise that a picture begins with: standard normal values that are a function of seed, image
// and element alone, so that every backend, thread count and processor starts from the same bits.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3") turns a counter into
// four random words, Box and Muller's method two words into two values. Logarithm, sine and cosine
// are polynomials of our own in double: additions, multiplications, divisions and square roots are
// exact by IEEE 754, the functions of a C library are not.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace octet::engine {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// Elements first, first + 1, ... of the noise of one image. `image` tells noises of one seed apart:
// the captions of a calibration. Pictures have seeds of their own and the number 0. Ranges may be
// filled in any order and by any number of threads.
void fill_noise(std::span<float> values, uint64_t seed, uint64_t image, uint64_t first = 0);

std::vector<float> make_noise(uint64_t seed, uint64_t image, size_t count);

}  // namespace octet::engine
