// octet::compare: runs generate() twice. What the first run shows of its steps and pictures is kept
// on disk, and the second run is measured against it as it goes.
#include "octet/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "api/boundary.h"
#include "api/engine.h"
#include "base/error.h"
#include "base/scratch_file.h"
#include "formats/text.h"
#include "measure/difference.h"

namespace octet {
namespace {

using measure::PixelView;

PixelView view_of(const Picture& picture) { return {picture.rgb, picture.width, picture.height}; }

// The reference's run, in the order in which it happened: per image the velocity of the first step
// and the latents of all steps; then the pixels of all images.
class Record {
 public:
  void write(const LatentStep& step) {
    if (step.step == 1) steps_.write(std::as_bytes(step.velocity));
    steps_.write(std::as_bytes(step.latent));
  }
  void write(const Picture& picture) { pixels_.write(std::as_bytes(std::span(picture.rgb))); }

  void rewind() {
    steps_.rewind();
    pixels_.rewind();
  }

  std::vector<float> numbers(size_t count) {
    std::vector<float> values(count);
    steps_.read(std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::vector<uint8_t> pixels(size_t count) {
    std::vector<uint8_t> values(count);
    pixels_.read(std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  ScratchFile steps_, pixels_;
};

Picture picture_of_difference(const Picture& b, const std::vector<uint8_t>& a) {
  Picture made;
  made.index = b.index;
  made.width = b.width;
  made.height = b.height;
  for (size_t i = 0; i < a.size(); ++i) {
    const int apart = std::abs(int{b.rgb[i]} - int{a[i]});
    made.rgb.push_back(static_cast<uint8_t>(std::min(255, apart * kDifferenceAmplification)));
  }
  made.metadata = {{"amplification", std::to_string(kDifferenceAmplification)}};
  return made;
}

// The statistic of one number of each image.
template <class NumberOf>
Statistic over(const std::vector<ComparedImage>& images, const NumberOf& number_of) {
  std::vector<double> values;
  for (const ComparedImage& image : images) values.push_back(number_of(image));
  return measure::statistic(values);
}

template <class DifferenceOf>
DifferenceStatistics differences_over(const std::vector<ComparedImage>& images,
                                      const DifferenceOf& difference_of) {
  const auto member = [&](double Difference::*number) {
    return over(images, [&](const ComparedImage& image) { return difference_of(image).*number; });
  };
  return {member(&Difference::cosine), member(&Difference::relative_rmse),
          member(&Difference::snr_db), member(&Difference::max_abs)};
}

void add_statistics(CompareReport& report) {
  const std::vector<ComparedImage>& images = report.images;
  report.first_velocity =
      differences_over(images, [](const ComparedImage& image) { return image.first_velocity; });
  for (size_t step = 0; step < images.front().steps.size(); ++step) {
    report.steps.push_back(
        differences_over(images, [&](const ComparedImage& image) { return image.steps[step]; }));
  }
  report.psnr_db = over(images, [](const ComparedImage& image) { return image.psnr_db; });
  report.ssim = over(images, [](const ComparedImage& image) { return image.ssim; });
}

class Comparison {
 public:
  Comparison(const OnCompareStep& on_step, const OnComparedPicture& on_picture)
      : on_step_(on_step), on_picture_(on_picture) {}

  CompareReport run(GenerateRequest a, GenerateRequest b) {
    if (a.model.fallback.empty()) a.model.fallback = b.model.model;
    if (b.model.fallback.empty()) b.model.fallback = a.model.model;
    check_both(a, b);
    RenderCallbacks of_a;
    of_a.latent = [&](const LatentStep& step) { record_.write(step); };
    of_a.picture = [&](const Picture& picture) {
      record_.write(picture);
      hand_over("a", picture);
    };
    report_.a = render(ComparedSide::a, a, of_a);
    record_.rewind();
    report_.images.resize(static_cast<size_t>(b.picture.images));
    RenderCallbacks of_b;
    of_b.latent = [&](const LatentStep& step) { compare_step(step); };
    of_b.picture = [&](const Picture& picture) {
      hand_over("b", picture);
      compare_picture(picture);
    };
    report_.b = render(ComparedSide::b, b, of_b);
    add_statistics(report_);
    return std::move(report_);
  }

 private:
  // Before either is loaded.
  void check_both(const GenerateRequest& a, const GenerateRequest& b) {
    const PictureRequest &of_a = a.picture, &of_b = b.picture;
    check(of_a.images == of_b.images && of_a.size == of_b.size && of_a.seed == of_b.seed &&
              of_a.noise == of_b.noise,
          "compare: A and B are to differ in images, size or noise, expected the same");
    const LatentShape shape = api::OneShot(a).check(/*warn=*/true),
                      other = api::OneShot(b).check(/*warn=*/of_a.caption != of_b.caption);
    check(shape == other,
          "compare: the latents of {} are {} tokens of {} channels after {} steps, those of {} are "
          "{} of {} after {}; expected models whose latents are alike",
          in_quotes(a.model.model), shape.tokens, shape.channels, shape.steps,
          in_quotes(b.model.model), other.tokens, other.channels, other.steps);
    report_.tokens = shape.tokens;
    report_.channels = shape.channels;
  }

  RenderReport render(ComparedSide side, const GenerateRequest& request,
                      RenderCallbacks callbacks) {
    bool stopped = false;
    const std::string sentence = fmt::format(
        "compare: stopped on request while {} ran; a comparison takes both to their end",
        side == ComparedSide::a ? "A" : "B");
    callbacks.progress = [&](const RenderProgress& progress) {
      stopped = stopped || (on_step_ && !on_step_(side, progress));
      return !stopped;
    };
    callbacks.picture = [&, on_picture = std::move(callbacks.picture)](const Picture& picture) {
      if (stopped) fail("{}", sentence);  // what is complete is still handed over
      on_picture(picture);
    };
    try {
      return api::OneShot(request).run(callbacks, /*warn=*/false);
    } catch (const Cancelled&) {
      fail("{}", sentence);
    }
  }

  ComparedImage& image(int index) { return report_.images[static_cast<size_t>(index)]; }

  void compare_step(const LatentStep& step) {
    const auto apart = [&](std::span<const float> candidate) {
      return measure::difference(record_.numbers(candidate.size()), candidate);
    };
    if (step.step == 1) image(step.image).first_velocity = apart(step.velocity);
    image(step.image).steps.push_back(apart(step.latent));
  }

  void compare_picture(const Picture& b) {
    const std::vector<uint8_t> pixels = record_.pixels(b.rgb.size());
    const PixelView a = {pixels, b.width, b.height};
    image(b.index).psnr_db = measure::psnr_db(a, view_of(b));
    image(b.index).ssim = measure::ssim(a, view_of(b));
    hand_over("difference", picture_of_difference(b, pixels));
  }

  void hand_over(const char* name, const Picture& picture) const {
    if (on_picture_) on_picture_(name, picture);
  }

  const OnCompareStep& on_step_;
  const OnComparedPicture& on_picture_;
  Record record_;
  CompareReport report_;
};

}  // namespace

CompareReport compare(const GenerateRequest& a, const GenerateRequest& b,
                      const OnCompareStep& on_step, const OnComparedPicture& on_picture) try {
  return Comparison(on_step, on_picture).run(a, b);
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
