// The noise that a picture begins with: standard normal values that depend only on seed, image and
// element, so that every backend, thread count and processor starts from the same bits.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3") turns a counter into
// four random words, and the Box-Muller method two words into two values. Logarithm, sine and
// cosine are our own polynomials in double: IEEE 754 defines every bit of additions,
// multiplications, divisions and square roots, but not of a C library's functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace octet::engine {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// Elements first, first + 1, ... of the noise of one image. `image` distinguishes noises of one
// seed, such as those for the captions of a calibration; pictures have their own seeds and the
// number 0. Ranges may be filled in any order and by any number of threads.
void fill_noise(std::span<float> values, uint64_t seed, uint64_t image, uint64_t first = 0);

// With a pool by all of its threads: an element takes a tenth of a microsecond, and a GPU would
// wait.
std::vector<float> make_noise(uint64_t seed, uint64_t image, size_t count,
                              ThreadPool* pool = nullptr);

}  // namespace octet::engine
