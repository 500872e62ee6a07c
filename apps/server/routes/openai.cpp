// POST /v1/images/generations as OpenAI's clients send it.
#include "server/routes/openai.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/routes/base64.h"
#include "server/routes/job_fields.h"
#include "server/routes/job_json.h"

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
void read_fixed_fields(Fields& fields, const Service& service, ImageRequest& request) {
  for (const char* name : {"user", "moderation", "style", "safety_identifier"}) {
    if (fields.find(name) != nullptr) request.ignored.emplace_back(name);
  }
  if (const auto model = fields.text("model", kLongestWord)) {
    if (*model != service.options().model_id) request.ignored.emplace_back("model");
  }
  const Json* const background = fields.find("background");
  if (!is_same_json(background, "auto") && !is_same_json(background, "opaque")) {
    refuse_field("background",
                 "`background` is neither auto nor opaque: pictures have no "
                 "transparency");
  }
}

ImageRequest read_image_request(const Service& service, const Call& call) {
  const Json body = call.body();
  Fields fields(body);
  const RequestLimits& limits = service.options().limits;
  ImageRequest request{.spec = spec_of(call)};
  JobSpec& spec = request.spec;
  read_caption_fields(fields, limits, /*recognize=*/true, spec);
  read_picture_fields(fields, limits, spec);
  read_fixed_fields(fields, service, request);
  request.quality = fields.text("quality", kLongestWord).value_or("auto");
  const EngineInfo info = service.info();
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
  for (std::string& name : fields.unknown()) request.ignored.push_back(std::move(name));
  return request;
}

std::string link_to(const Context& context, const Call& call, const Job& job, int index) {
  std::string start = context.options.public_address;
  if (start.empty()) {
    const std::string* const host = call.request().header("host");
    start = (context.options.tls ? "https://" : "http://") + (host ? *host : "localhost");
  }
  return start + picture_path(job, index);
}

Json images_json(const Context& context, const Call& call, const ImageRequest& request,
                 const Job& job, const JobView& view) {
  const JobSpec& spec = job.spec();
  Json data = Json::array();
  for (const FinishedPicture& picture : view.pictures) {
    Json entry = Json::object();
    if (request.url) {
      entry["url"] = link_to(context, call, job, picture.index);
    } else {
      entry["b64_json"] = to_base64(*picture.file);
    }
    if (!spec.prompt.empty()) entry["revised_prompt"] = spec.picture.caption;
    entry["seed"] = picture.seed;
    data.push_back(std::move(entry));
  }
  return {{"created", static_cast<int64_t>(view.created_at)},
          {"data", std::move(data)},
          {"output_format", word_of(spec.format)},
          {"size", size_text(spec.size)},
          {"quality", request.quality},
          {"background", "opaque"},
          {"usage", usage_json(job, context.service.info().token_side)},
          {"octet", {{"job", job.id()}, {"warnings", spec.warnings}}}};
}

void answer_images(Context& context, const CallPtr& call, const ImageRequest& request,
                   const std::shared_ptr<Job>& job) {
  const auto follower = context.followers.follow(job, 0);
  cancel_with_client(call, follower);
  follower->start([&context, call, request, job](const JobEvent& event) {
    if (event.kind != JobEvent::Kind::ended) return;
    context.guarded(call, [&] {
      const JobView view = job->view();
      if (view.state != JobState::completed) throw Refused{failure_of(view)};
      http::Headers headers;
      if (!request.ignored.empty()) {
        headers.emplace_back("X-Octet-Ignored", ignored_header(request.ignored));
      }
      call->json(200, images_json(context, *call, request, *job, view), std::move(headers));
    });
  });
}

void generate_images(Context& context, const CallPtr& call) {
  const ImageRequest request = read_image_request(context.service, *call);
  const std::shared_ptr<Job> job = context.service.submit(request.spec);
  request.stream ? stream_images(context, call, request, job)
                 : answer_images(context, call, request, job);
}

}  // namespace

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

Json usage_json(const Job& job, int token_side) {
  const JobView view = job.view();
  const PictureSize size = job.spec().size;
  const int64_t side = std::max(token_side, 1);
  const int64_t text = view.report ? view.report->text_tokens : 0;
  const int64_t image =
      (size.width / side) * (size.height / side) * static_cast<int64_t>(view.pictures.size());
  return {{"input_tokens", text},
          {"input_tokens_details", {{"text_tokens", text}, {"image_tokens", 0}}},
          {"output_tokens", image},
          {"output_tokens_details", {{"text_tokens", 0}, {"image_tokens", image}}},
          {"total_tokens", text + image}};
}

Failure failure_of(const JobView& view) {
  if (view.failure) return *view.failure;
  return failure(409, "the job was cancelled before its pictures were complete", {}, "cancelled");
}

void cancel_with_client(const CallPtr& call, const std::shared_ptr<Follower>& follower) {
  call->on_gone([weak = std::weak_ptr(follower)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    if (alive->job()->spec().idempotency_key.empty()) alive->job()->cancel();
    alive->leave();
  });
}

void add_openai_routes(Context& context) {
  context.router.add(
      {.method = "POST",
       .pattern = "/v1/images/generations",
       .answer = [&context](const CallPtr& call) { generate_images(context, call); }});
}

}  // namespace octet::server
