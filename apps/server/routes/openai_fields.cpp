// What clients of OpenAI ask for, read from the body of POST /v1/images/generations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "server/routes/job_fields.h"
#include "server/routes/openai.h"

namespace octet::server {
namespace {

constexpr size_t kLongestWord = 256;
constexpr int64_t kMostPartialImages = 3;
constexpr size_t kMostIgnored = 20;

bool is_header_name(const std::string& name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest &&
         std::ranges::all_of(name, [](unsigned char each) {
           return std::isalnum(each) || each == '_' || each == '-' || each == '.';
         });
}

bool is_same_json(const Json* a, const char* word) {
  return a == nullptr || (a->is_string() && a->get_ref<const std::string&>() == word);
}

// What clients of OpenAI may ask for and this server has only one way of.
void read_fixed_fields(Fields& fields, const std::string& model_id, ImageRequest& request) {
  for (const char* name : {"user", "moderation", "style", "safety_identifier"}) {
    if (fields.find(name) != nullptr) request.ignored.emplace_back(name);
  }
  if (const auto model = fields.text("model", kLongestWord)) {
    if (*model != model_id) request.ignored.emplace_back("model");
  }
  const Json* const background = fields.find("background");
  if (!is_same_json(background, "auto") && !is_same_json(background, "opaque")) {
    refuse_field("background",
                 "`background` is neither auto nor opaque: pictures have no "
                 "transparency");
  }
}

}  // namespace

ImageRequest read_image_request(const RequestLimits& limits, const std::string& model_id,
                                const EngineInfo& info, const Call& call) {
  const Json body = call.body();
  Fields fields(body);
  ImageRequest request{.spec = spec_of(call)};
  JobSpec& spec = request.spec;
  read_caption_fields(fields, limits, /*recognize=*/true, spec);
  read_picture_fields(fields, limits, spec);
  read_fixed_fields(fields, model_id, request);
  request.quality = fields.text("quality", kLongestWord).value_or("auto");
  const std::string preset = preset_of_quality(request.quality, info.presets);
  if (!preset.empty() && !spec.picture.preset.empty() && preset != spec.picture.preset) {
    refuse_field("quality", "the request has both `quality` and another `preset`, expected one");
  }
  if (spec.picture.preset.empty()) spec.picture.preset = preset;
  request.url = fields.choice("response_format", {"b64_json", "url"}) == "url";
  request.stream = fields.truth("stream").value_or(false);
  request.partial_images =
      static_cast<int>(fields.integer("partial_images", 0, kMostPartialImages).value_or(0));
  if (request.stream && request.url) {
    refuse_field("response_format",
                 "`response_format` is url, which a stream has not: its events "
                 "contain the pictures");
  }
  if (request.stream && request.partial_images > 0) {
    int steps = spec.picture.steps;
    for (const PresetInfo& each : info.presets) {
      const bool is_it = spec.picture.preset.empty() || each.name == spec.picture.preset ||
                         each.official_name == spec.picture.preset;
      if (steps == 0 && is_it) steps = each.steps;
    }
    spec.preview_every = preview_every(steps, request.partial_images);
    spec.preview_scale = std::max(info.token_side, 1);  // the size of the picture
  }
  request.token_side = info.token_side;
  for (std::string& name : fields.unknown()) request.ignored.push_back(std::move(name));
  return request;
}

std::string preset_of_quality(const std::string& quality, const std::vector<PresetInfo>& presets) {
  const auto by_steps = [](const PresetInfo& a, const PresetInfo& b) { return a.steps < b.steps; };
  if (presets.empty() || quality == "auto" || quality == "standard" || quality == "medium") {
    return {};  // the model's own choice
  }
  if (quality == "low") return std::ranges::min_element(presets, by_steps)->name;
  if (quality == "high" || quality == "hd") {
    return std::ranges::max_element(presets, by_steps)->name;
  }
  std::vector<std::string> names;
  for (const PresetInfo& each : presets) {
    if (each.name == quality || each.official_name == quality) return each.name;
    names.push_back(each.name);
  }
  refuse_field("quality",
               fmt::format("`quality` is {}, expected auto, low, medium, high, standard, hd or one "
                           "of the model's presets: {}",
                           to_line(Json(quality)), fmt::join(names, ", ")));
}

int preview_every(int steps, int partial_images) {
  const int parts = partial_images + 1;
  return std::max((steps + parts - 1) / parts, 1);
}

std::string ignored_header(const std::vector<std::string>& names) {
  std::set<std::string> listed;
  for (const std::string& name : names) {
    if (listed.size() < kMostIgnored) listed.insert(is_header_name(name) ? name : "?");
  }
  return fmt::format("{}", fmt::join(listed, ", "));
}

}  // namespace octet::server
