// Renders the same pictures with two models, or with one model in two ways, and measures how far
// they are apart.
//
//   octet::CompareRequest request;  // a and b alike but for what is to be compared
//   const octet::CompareReport report = octet::compare(request);
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

struct CaptionText {
  std::string name;               // for files and reports: "poster"
  std::string where = "caption";  // begins a sentence about it: "poster.json"
  std::string text;               // JSON
};

struct CompareRequest {
  ModelOptions a, b;                  // the reference, and what is measured
  PictureRequest picture;             // of each caption, whose words it lacks
  std::vector<CaptionText> captions;  // at least one
};

struct ComparedImage {
  size_t caption = 0;  // of CompareRequest::captions
  uint64_t seed = 0;   // its own; not with noise
  PictureLook look_a = PictureLook::ordinary, look_b = PictureLook::ordinary;
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

// How far the features are apart that the two text encoders made of one caption, token by token.
struct TextDifference {
  int64_t tokens = 0;       // 0: their features have other shapes, and are not compared
  double mean_cosine = 1;   // over the tokens
  double worst_cosine = 1;  // of the token that is furthest away
  double max_abs = 0;       // the largest difference of all features
};

struct DifferenceStatistics {
  Statistic cosine, relative_rmse, snr_db, max_abs;
};

struct CompareReport {
  RenderReport a, b;  // of all pictures
  std::vector<CaptionText> captions;
  std::vector<std::string> prompts;   // the captions as the models got them
  std::vector<TextDifference> texts;  // of each caption
  bool seeded = true;                 // the noise is that of seeds
  int64_t tokens = 0, channels = 0;   // of a latent
  std::vector<ComparedImage> images;  // those of the first caption, of the second, ...
  // Over all images; intervals are over captions.
  DifferenceStatistics first_velocity;
  std::vector<DifferenceStatistics> steps;
  Statistic psnr_db, ssim;
};

// What was measured as JSON: the fields that docs/json.md has for octet.compare/1 from `tokens` to
// `images`.
OCTET_API std::string compare_json(const CompareReport& report);

enum class ComparedSide { a, b };
template <>
struct Words<ComparedSide> {
  static constexpr Word<ComparedSide> list[] = {{ComparedSide::a, "a"}, {ComparedSide::b, "b"}};
};

// |b - a| of every channel is shown this many times as bright, in pictures named "difference".
inline constexpr int kDifferenceAmplification = 8;

struct CompareCallbacks {
  // False ends the work: compare() throws an Error that says so. `caption` is an index.
  std::function<bool(ComparedSide, size_t caption, const RenderProgress&)> progress;
  // `name` is "a", "b" or "difference".
  std::function<void(const std::string& name, size_t caption, const Picture&)> picture;
};

// Runs `a`, the reference, to its end, releases it, and runs `b`: the two models never meet in
// memory, and each is loaded once. What `a` made waits in a temporary file. A model without one of
// the parts (text encoder, VAE, unconditional transformer) takes that of the other. Throws Error
// with one sentence for what generate() refuses, before either is loaded, and for models whose
// latents cannot be compared: those of other shapes or sizes, or after steps of other times or
// another guidance.
OCTET_API CompareReport compare(const CompareRequest& request,
                                const CompareCallbacks& callbacks = {});

}  // namespace octet
