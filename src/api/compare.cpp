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
#include "api/generate.h"
#include "base/error.h"
#include "base/scratch_file.h"
#include "engine/sampler.h"
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
    if (a.fallback.empty()) a.fallback = b.model;
    if (b.fallback.empty()) b.fallback = a.model;
    check_both(a, b);
    a.on_latent = [&](const LatentStep& step) { record_.write(step); };
    report_.a = generate(ComparedSide::a, a, [&](const Picture& picture) {
      record_.write(picture);
      hand_over("a", picture);
    });
    record_.rewind();
    report_.images.resize(static_cast<size_t>(b.images));
    b.on_latent = [&](const LatentStep& step) { compare_step(step); };
    report_.b = generate(ComparedSide::b, b, [&](const Picture& picture) {
      hand_over("b", picture);
      compare_picture(picture);
    });
    add_statistics(report_);
    return std::move(report_);
  }

 private:
  // Before either is loaded.
  void check_both(const GenerateRequest& a, const GenerateRequest& b) {
    check(a.images == b.images && a.size == b.size && a.seed == b.seed &&
              a.noise_file == b.noise_file,
          "compare: A and B are to differ in images, size or noise, expected the same");
    const engine::LatentShape shape = check_request(a, /*warn=*/true),
                              other = check_request(b, /*warn=*/a.caption != b.caption);
    check(shape == other,
          "compare: the latents of {} are {} tokens of {} channels after {} steps, those of {} are "
          "{} of {} after {}; expected models whose latents are alike",
          in_quotes(a.model), shape.tokens, shape.channels, shape.steps, in_quotes(b.model),
          other.tokens, other.channels, other.steps);
    report_.tokens = shape.tokens;
    report_.channels = shape.channels;
  }

  GenerateReport generate(ComparedSide side, const GenerateRequest& request,
                          const std::function<void(const Picture&)>& on_picture) {
    bool stopped = false;
    const auto tell = [&](const GenerateStep& step) {
      stopped = stopped || (on_step_ && !on_step_(side, step));
      return !stopped;
    };
    const std::string sentence = fmt::format(
        "compare: stopped on request while {} ran; a comparison takes both to their end",
        side == ComparedSide::a ? "A" : "B");
    try {
      return generate_checked(request, tell, [&](const Picture& picture) {
        if (stopped) fail("{}", sentence);  // generate() goes on with what is complete
        on_picture(picture);
      });
    } catch (const engine::Cancelled&) {
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
