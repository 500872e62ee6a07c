// octet::compare: renders the same requests twice. What the first model shows of its steps and
// pictures is kept on disk, and the second is measured against it as it goes.
#include "octet/tools/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/scratch_file.h"
#include "engine/requests.h"
#include "formats/boundary.h"
#include "formats/text.h"
#include "measure/compare/compare.h"
#include "measure/compare/difference.h"

namespace octet {
namespace {

using measure::PixelView;

PixelView view_of(const Picture& picture) { return {picture.rgb, picture.width, picture.height}; }

// The reference's run, in the order in which it happened: per image the velocity of the first step
// and the latents of all steps; the pixels of all images; and the features of all captions.
class Record {
 public:
  static uint64_t bytes_of_image(const LatentShape& shape, PictureSize size) {
    const auto latent = static_cast<uint64_t>(shape.tokens * shape.channels) * sizeof(float);
    const uint64_t pixels = uint64_t{3} * static_cast<uint64_t>(size.width * size.height);
    return latent * static_cast<uint64_t>(shape.steps + 1) + pixels;
  }

  void write(const LatentStep& step) {
    if (step.step == 1) steps_.write(std::as_bytes(step.velocity));
    steps_.write(std::as_bytes(step.latent));
  }
  void write(const TextFeatures& text) { text_.write(std::as_bytes(text.values)); }
  void write(const Picture& picture) { pixels_.write(std::as_bytes(std::span(picture.rgb))); }

  void rewind() {
    steps_.rewind();
    pixels_.rewind();
    text_.rewind();
  }

  std::vector<float> numbers(size_t count) { return numbers_of(steps_, count); }
  std::vector<float> text(size_t count) { return numbers_of(text_, count); }
  std::vector<uint8_t> pixels(size_t count) {
    std::vector<uint8_t> values(count);
    pixels_.read(std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  static std::vector<float> numbers_of(ScratchFile& file, size_t count) {
    std::vector<float> values(count);
    file.read(std::as_writable_bytes(std::span(values)));
    return values;
  }

  ScratchFile steps_, pixels_, text_;
};

TextDifference text_difference(std::span<const float> a, const TextFeatures& b) {
  TextDifference made{.tokens = b.tokens, .mean_cosine = 0};
  const auto channels = static_cast<size_t>(b.channels);
  for (size_t at = 0; at < a.size(); at += channels) {
    const Difference apart =
        measure::difference(a.subspan(at, channels), b.values.subspan(at, channels));
    made.mean_cosine += apart.cosine / static_cast<double>(b.tokens);
    made.worst_cosine = std::min(made.worst_cosine, apart.cosine);
    made.max_abs = std::max(made.max_abs, apart.max_abs);
  }
  return made;
}

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

// The statistic of one number of each image, in groups of one caption.
template <class NumberOf>
Statistic over(const CompareReport& report, const NumberOf& number_of) {
  measure::Groups groups(report.captions.size());
  for (const ComparedImage& image : report.images) {
    groups[image.caption].push_back(number_of(image));
  }
  return measure::grouped_statistic(groups);
}

template <class DifferenceOf>
DifferenceStatistics differences_over(const CompareReport& report,
                                      const DifferenceOf& difference_of) {
  const auto member = [&](double Difference::*number) {
    return over(report, [&](const ComparedImage& image) { return difference_of(image).*number; });
  };
  return {member(&Difference::cosine), member(&Difference::relative_rmse),
          member(&Difference::snr_db), member(&Difference::max_abs)};
}

void add_statistics(CompareReport& report) {
  report.first_velocity =
      differences_over(report, [](const ComparedImage& image) { return image.first_velocity; });
  for (size_t step = 0; step < report.images.front().steps.size(); ++step) {
    report.steps.push_back(
        differences_over(report, [&](const ComparedImage& image) { return image.steps[step]; }));
  }
  report.psnr_db = over(report, [](const ComparedImage& image) { return image.psnr_db; });
  report.ssim = over(report, [](const ComparedImage& image) { return image.ssim; });
}

std::vector<PictureRequest> requests_of(const CompareRequest& request) {
  std::vector<PictureRequest> requests;
  for (const CaptionText& caption : request.captions) {
    requests.push_back(request.picture);
    requests.back().caption = caption.text;
    requests.back().caption_name = caption.where;
  }
  return requests;
}

class Comparison {
 public:
  Comparison(const CompareCallbacks& callbacks, const measure::OnChecked& checked,
             const measure::ComparedWords& words)
      : callbacks_(callbacks), checked_(checked), words_(words) {}

  CompareReport run(const CompareRequest& request) {
    check(!request.captions.empty(), "{}: there is no caption, expected at least one",
          words_.command);
    ModelOptions a = request.a, b = request.b;
    if (a.fallback.empty()) a.fallback = b.model;
    if (b.fallback.empty()) b.fallback = a.model;
    requests_ = requests_of(request);
    check_both(a, b, !std::ranges::all_of(request.captions, &CaptionText::is_default));
    report_.captions = request.captions;
    report_.seeded = request.picture.noise.empty();
    RenderCallbacks of_a;
    of_a.text = [&](const TextFeatures& text) {
      record_.write(text);
      texts_of_a_.push_back({text.tokens, text.channels});
    };
    of_a.latent = [&](const LatentStep& step) { record_.write(step); };
    of_a.picture = [&](const Picture& picture) {
      record_.write(picture);
      hand_over(word_of(ComparedSide::a), picture);
      ComparedImage& made = report_.images.emplace_back();
      made.caption = caption_;
      made.seed = picture.seed;
      made.look_a = picture.look;
    };
    report_.a = render(ComparedSide::a, a, of_a);
    record_.rewind();
    RenderCallbacks of_b;
    of_b.text = [&](const TextFeatures& text) { compare_text(text); };
    of_b.latent = [&](const LatentStep& step) { compare_step(step); };
    of_b.picture = [&](const Picture& picture) {
      hand_over(word_of(ComparedSide::b), picture);
      compare_picture(picture);
    };
    report_.b = render(ComparedSide::b, b, of_b);
    add_statistics(report_);
    return std::move(report_);
  }

 private:
  // Before either is loaded. The captions are those of both: if any, one of them warns.
  void check_both(const ModelOptions& a, const ModelOptions& b, bool warns) {
    const engine::CheckedRequests of_a = engine::RequestSession(a, requests_).check(warns),
                                  of_b = engine::RequestSession(b, requests_).check(/*warn=*/false);
    check(of_a.size == of_b.size,
          "{}: {} makes pictures of {}, {} of {}; expected one size for both, name it as `size`",
          words_.command, in_quotes(a.model), models::name_of(of_a.size), in_quotes(b.model),
          models::name_of(of_b.size));
    const LatentShape shape = of_a.latents, other = of_b.latents;
    check(
        shape == other,
        "{}: the latents of {} are {} tokens of {} channels after {} steps, those of {} are {} of "
        "{} after {}; expected models whose latents have the same shape",
        words_.command, in_quotes(a.model), shape.tokens, shape.channels, shape.steps,
        in_quotes(b.model), other.tokens, other.channels, other.steps);
    check(
        of_a.schedule.times == of_b.schedule.times &&
            of_a.schedule.guidance == of_b.schedule.guidance,
        "{}: the steps of {} have different times or guidance than those of {}; expected the same "
        "presets in the {} of both folders",
        words_.command, in_quotes(a.model), in_quotes(b.model), models::kPresetsFile);
    report_.tokens = shape.tokens;
    report_.channels = shape.channels;
    check_scratch_room(of_a.text_bytes + requests_.size() *
                                             static_cast<uint64_t>(requests_.front().images) *
                                             Record::bytes_of_image(shape, of_a.size));
    if (checked_) checked_(of_a.model, of_b.model);
  }

  // All captions, with one model that stays loaded.
  RenderReport render(ComparedSide side, const ModelOptions& model, RenderCallbacks told) {
    bool stopped = false;
    const std::string sentence =
        fmt::format("{}: stopped on request while {} ran; {} needs both to finish", words_.command,
                    side == ComparedSide::a ? words_.a : words_.b, words_.whole);
    told.progress = [&](const RenderProgress& progress) {
      stopped = stopped || (callbacks_.progress && !callbacks_.progress(side, caption_, progress));
      return !stopped;
    };
    told.picture = [&, on_picture = std::move(told.picture)](const Picture& picture) {
      if (stopped) fail("{}", sentence);  // what is complete is still handed over
      on_picture(picture);
    };
    RenderReport total;
    engine::RequestSession session(model, requests_);
    for (caption_ = 0; caption_ < requests_.size(); ++caption_) {
      try {
        const RenderReport report = session.run(caption_, told);
        if (side == ComparedSide::a) report_.prompts.push_back(report.caption);
        if (caption_ == 0) {
          total = report;
        } else {
          add_report(total, report);
        }
      } catch (const Cancelled&) {
        fail("{}", sentence);
      }
    }
    return total;
  }

  // Of the caption that is being rendered.
  ComparedImage& image(int index) {
    const auto images = static_cast<size_t>(requests_.front().images);
    return report_.images[caption_ * images + static_cast<size_t>(index)];
  }

  void compare_text(const TextFeatures& text) {
    const TextFeatures& of_a = texts_of_a_[caption_];
    const std::vector<float> values =
        record_.text(static_cast<size_t>(of_a.tokens * of_a.channels));
    const bool alike = of_a.tokens == text.tokens && of_a.channels == text.channels;
    report_.texts.push_back(alike ? text_difference(values, text) : TextDifference());
  }

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
    image(b.index).look_b = b.look;
    image(b.index).psnr_db = measure::psnr_db(a, view_of(b));
    image(b.index).ssim = measure::ssim(a, view_of(b));
    hand_over("difference", picture_of_difference(b, pixels));
  }

  void hand_over(const char* name, const Picture& picture) const {
    if (callbacks_.picture) callbacks_.picture(name, caption_, picture);
  }

  const CompareCallbacks& callbacks_;
  const measure::OnChecked& checked_;
  const measure::ComparedWords& words_;
  std::vector<PictureRequest> requests_;
  size_t caption_ = 0;  // that is being rendered
  Record record_;
  std::vector<TextFeatures> texts_of_a_;  // only their shapes, for each caption
  CompareReport report_;
};

}  // namespace

CompareReport measure::compare_models(const CompareRequest& request,
                                      const CompareCallbacks& callbacks, const OnChecked& checked,
                                      const ComparedWords& words) {
  return Comparison(callbacks, checked, words).run(request);
}

CompareReport compare(const CompareRequest& request, const CompareCallbacks& callbacks) try {
  return measure::compare_models(request, callbacks, nullptr);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
