// Renders the same pictures with two models, or with one model in two configurations, and measures
// how far apart they are.
//
//   octet::CompareRequest request;  // a and b differ in what is compared
//   const octet::CompareReport report = octet::compare(request);
//   std::cout << report.steps.back().cosine.mean << "\n";
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/generate.h"
#include "octet/tools/difference.h"

namespace octet {

struct CaptionText {
  std::string name;               // for files and reports: "poster"
  std::string where = "caption";  // begins a sentence about it: "poster.json"
  std::string text;               // JSON
  bool is_default = false;        // of default_captions(): nobody is warned of what they lack
};

struct CompareRequest {
  ModelOptions a, b;                  // the reference, and what is compared with it
  PictureRequest picture;             // for each caption; its own caption is ignored
  std::vector<CaptionText> captions;  // at least one
};

struct ComparedImage {
  size_t caption = 0;  // of CompareRequest::captions
  uint64_t seed = 0;   // its own; not with noise
  PictureLook look_a = PictureLook::ordinary, look_b = PictureLook::ordinary;
  // Of the guided velocities of the first step. Both start from the same noise, so this is the
  // difference of the networks alone; the latents also show how steps propagate it.
  Difference first_velocity;
  std::vector<Difference> steps;  // of the latents after each
  double psnr_db = 0;             // of the pixels, 0 to 255; infinite when they are equal
  // Mean of the three channels' structural similarity (Wang et al. 2004: a Gaussian window of 11 x
  // 11 pixels, sigma 1.5, K1 0.01, K2 0.03), over all windows inside the picture. NaN for pictures
  // with fewer pixels than that on a side.
  double ssim = 0;
};

// How far apart the two text encoders' features of one caption are, token by token.
struct TextDifference {
  int64_t tokens = 0;       // 0: their shapes differ, and they are not compared
  double mean_cosine = 1;   // over the tokens
  double worst_cosine = 1;  // of the worst token
  double max_abs = 0;       // the largest difference of all features
};

struct DifferenceStatistics {
  Statistic cosine, relative_rmse, snr_db, max_abs;
};

struct CompareReport {
  RenderReport a, b;  // of all pictures
  std::vector<CaptionText> captions;
  std::vector<std::string> prompts;   // the captions as passed to the models
  std::vector<TextDifference> texts;  // of each caption
  bool seeded = true;                 // the noise comes from seeds
  int64_t tokens = 0, channels = 0;   // of a latent
  std::vector<ComparedImage> images;  // those of the first caption, of the second, ...
  // Over all images; intervals are over captions.
  DifferenceStatistics first_velocity;
  std::vector<DifferenceStatistics> steps;
  Statistic psnr_db, ssim;
};

enum class ComparedSide { a, b };
template <>
struct Words<ComparedSide> {
  static constexpr Word<ComparedSide> list[] = {{ComparedSide::a, "a"}, {ComparedSide::b, "b"}};
};

// |b - a| of every channel is amplified by this factor in pictures named "difference".
inline constexpr int kDifferenceAmplification = 8;

struct CompareCallbacks {
  // False ends the work: compare() throws an Error that says so. `caption` is an index.
  std::function<bool(ComparedSide, size_t caption, const RenderProgress&)> progress;
  // `name` is "a", "b" or "difference".
  std::function<void(const std::string& name, size_t caption, const Picture&)> picture;
};

// Runs `a`, the reference, to its end, releases it, and runs `b`: the two models are never in
// memory at the same time, and each is loaded once. The results of `a` are kept in a temporary
// file. A model without one of the parts (text encoder, VAE, unconditional network) uses the
// other's. Throws Error with one sentence for what generate() refuses, before either is loaded, and
// for models whose latents cannot be compared: different shapes or sizes, or steps with different
// times or guidance.
OCTET_API CompareReport compare(const CompareRequest& request,
                                const CompareCallbacks& callbacks = {});

}  // namespace octet
