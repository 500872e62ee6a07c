// How far numbers and pictures are apart, summed in double.
#pragma once

#include <cstdint>
#include <span>

#include "engine/pixels.h"
#include "octet/tools/difference.h"

namespace octet::measure {

// Of as many elements, all finite.
Difference difference(std::span<const float> reference, std::span<const float> candidate);

// The mean and its standard error, that of independent measurements: sqrt(variance / count), the
// variance with count - 1. bootstrap.h has the rest.
Statistic statistic(std::span<const double> values);

using engine::PixelView;  // of one size

// 10 log10(255^2 / mean square difference of all channels); infinite when they are equal.
double psnr_db(const PixelView& reference, const PixelView& candidate);

// Structural similarity as octet/compare.h describes it; NaN for a side under kSsimWindow pixels.
inline constexpr int kSsimWindow = 11;
double ssim(const PixelView& reference, const PixelView& candidate);

}  // namespace octet::measure
