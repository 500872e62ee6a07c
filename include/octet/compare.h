// Renders the same pictures with two models, or with one model in two ways, and measures how far
// they are apart.
//
//   octet::GenerateRequest a, b;  // alike but for the model, its linears, its dtype or its device
//   const octet::CompareReport report = octet::compare(a, b, {}, {});
//   std::cout << report.steps.back().cosine.mean << "\n";
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/difference.h"
#include "octet/export.h"
#include "octet/generate.h"

namespace octet {

struct ComparedImage {
  // Of the guided velocities of the first step. Both begin with the same noise, so this is what the
  // networks differ by; the latents also show how steps carry a difference along.
  Difference first_velocity;
  std::vector<Difference> steps;  // of the latents after each
  double psnr_db = 0;             // of the pixels, 0 to 255; infinite when they are equal
  // Mean of the three channels' structural similarity (Wang et al. 2004: a Gaussian window of 11 x
  // 11 pixels, sigma 1.5, K1 0.01, K2 0.03), over all windows inside of the picture. NaN for
  // pictures with fewer pixels than that on a side.
  double ssim = 0;
};

struct DifferenceStatistics {
  Statistic cosine, relative_rmse, snr_db, max_abs;
};

struct CompareReport {
  RenderReport a, b;
  int64_t tokens = 0, channels = 0;  // of a latent
  std::vector<ComparedImage> images;
  // Over all images.
  DifferenceStatistics first_velocity;
  std::vector<DifferenceStatistics> steps;
  Statistic psnr_db, ssim;
};

enum class ComparedSide { a, b };
// False ends the work: compare() throws an Error that says so.
using OnCompareStep = std::function<bool(ComparedSide, const RenderProgress&)>;

// |b - a| of every channel is shown this many times as bright, in pictures named "difference".
inline constexpr int kDifferenceAmplification = 8;

// `name` is "a", "b" or "difference".
using OnComparedPicture = std::function<void(const std::string& name, const Picture&)>;

// Runs `a`, the reference, to its end, releases it, and runs `b`: the two models never meet in
// memory. What `a` made waits in a temporary file. A model without one of the parts (text encoder,
// VAE, unconditional transformer) takes that of the other. Throws Error with one sentence for what
// generate() refuses, before either is loaded, and for requests whose latents cannot be compared.
OCTET_API CompareReport compare(const GenerateRequest& a, const GenerateRequest& b,
                                const OnCompareStep& on_step, const OnComparedPicture& on_picture);

}  // namespace octet
