// What such front ends ask for, read from the body of POST /sdapi/v1/txt2img.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "server/routes/job_fields.h"
#include "server/routes/openai.h"
#include "server/routes/sdapi.h"

namespace octet::server {
namespace {

constexpr int64_t kLargestSide = 1 << 16;
constexpr double kMostGuidanceScale = 1000;
constexpr int kPreviewsOfJob = 8;  // for those who ask for progress

void read_numbers(Fields& fields, const RequestLimits& limits, PictureRequest& picture) {
  picture.size.width = static_cast<int>(fields.integer("width", 1, kLargestSide).value_or(0));
  picture.size.height = static_cast<int>(fields.integer("height", 1, kLargestSide).value_or(0));
  if ((picture.size.width == 0) != (picture.size.height == 0)) {
    refuse_field(picture.size.width == 0 ? "width" : "height",
                 "the request has one of `width` and `height`, expected both or none");
  }
  const int64_t seed = fields.integer("seed", -1, INT64_MAX).value_or(-1);
  picture.seed = seed < 0 ? random_seed() : static_cast<uint64_t>(seed);
  picture.steps = static_cast<int>(fields.integer("steps", 1, limits.steps).value_or(0));
  if (const auto scale = fields.number("cfg_scale", 0, kMostGuidanceScale)) {
    picture.guidance = {static_cast<float>(*scale)};
  }
  const int64_t batch = fields.integer("batch_size", 1, limits.images).value_or(1);
  const int64_t rounds = fields.integer("n_iter", 1, limits.images).value_or(1);
  if (batch * rounds > limits.images) {
    refuse_field("batch_size", fmt::format("`batch_size` times `n_iter` is {}, expected at most {}",
                                           batch * rounds, limits.images));
  }
  picture.images = static_cast<int>(batch * rounds);
}

}  // namespace

TextToImage read_text_to_image(const RequestLimits& limits, const EngineInfo& info,
                               const Call& call) {
  TextToImage request{.spec = spec_of(call), .parameters = call.body()};
  Fields fields(request.parameters);
  JobSpec& spec = request.spec;
  std::string prompt = fields.text("prompt", limits.caption_bytes).value_or("");
  take_loras(prompt, spec.loras);
  if (prompt.find_first_not_of(" \t\r\n") == std::string::npos) {
    refuse_field("prompt", "`prompt` is missing or empty, expected a description of the picture");
  }
  (is_json_object(prompt) ? spec.picture.caption : spec.prompt) = prompt;
  spec.picture.caption_name = "prompt";
  read_numbers(fields, limits, spec.picture);
  const std::string negative = fields.text("negative_prompt", limits.caption_bytes).value_or("");
  // Front ends have one that goes with each request, whatever the model.
  if (info.takes_negative) {
    spec.picture.negative = negative;
  } else if (!negative.empty()) {
    request.ignored.emplace_back("negative_prompt");
  }
  spec.preview_every = kPreviewsOfJob;
  if (spec.picture.steps > 0)
    spec.preview_every = preview_every(spec.picture.steps, kPreviewsOfJob);
  for (std::string& name : fields.unknown()) request.ignored.push_back(std::move(name));
  return request;
}

Failure in_their_words(Failure failure) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames{
      {{"size", "width"},
       {"guidance", "cfg_scale"},
       {"n", "batch_size"},
       {"json_prompt", "prompt"},
       {"lora", "prompt"}}};
  for (const auto& [ours, theirs] : kNames) {
    const std::string quoted = fmt::format("`{}`", ours);
    for (size_t at = 0; (at = failure.message.find(quoted, at)) != std::string::npos;) {
      failure.message.replace(at + 1, ours.size(), theirs);
    }
    if (failure.param == ours) failure.param = theirs;
  }
  return failure;
}

void take_loras(std::string& prompt, std::vector<std::string>& loras) {
  constexpr std::string_view kBegin = "<lora:";
  size_t begin = 0;
  while ((begin = prompt.find(kBegin, begin)) != std::string::npos) {
    const size_t end = prompt.find('>', begin);
    if (end == std::string::npos) return;
    std::string lora = prompt.substr(begin + kBegin.size(), end - begin - kBegin.size());
    prompt.erase(begin, end + 1 - begin);
    const size_t colon = lora.find(':');
    const std::string name = lora.substr(0, colon);
    const double strength =
        colon == std::string::npos ? 1 : std::strtod(lora.c_str() + colon + 1, nullptr);
    loras.push_back(fmt::format("{}:{}", name, strength));
  }
}

}  // namespace octet::server
