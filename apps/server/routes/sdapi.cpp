// /sdapi/v1: what front ends made for AUTOMATIC1111's web UI and for stable-diffusion.cpp ask for.
// They send many fields that have no meaning here; those are ignored, and the answer says which.
#include "server/routes/sdapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/routes/base64.h"
#include "server/routes/fields.h"
#include "server/routes/job_json.h"
#include "server/routes/openai.h"

namespace octet::server {
namespace {

// What such servers store in a picture: "a fox\nSteps: 20, Sampler: Euler, ...".
std::string info_text(const JobSpec& spec, uint64_t seed) {
  const std::string& prompt = spec.prompt.empty() ? spec.picture.caption : spec.prompt;
  return fmt::format("{}\nSteps: {}, Sampler: Euler, Seed: {}, Size: {}", prompt, spec.steps, seed,
                     size_text(spec.size));
}

Json info_json(const Service& service, const Job& job, const JobView& view) {
  const JobSpec& spec = job.spec();
  const std::string& prompt = spec.prompt.empty() ? spec.picture.caption : spec.prompt;
  Json seeds = Json::array(), texts = Json::array();
  for (const FinishedPicture& each : view.pictures) {
    seeds.push_back(each.seed);
    texts.push_back(info_text(spec, each.seed));
  }
  const size_t count = view.pictures.size();
  return {{"prompt", prompt},
          {"all_prompts", std::vector<std::string>(count, prompt)},
          {"negative_prompt", spec.picture.negative},
          {"all_negative_prompts", std::vector<std::string>(count, spec.picture.negative)},
          {"seed", spec.picture.seed},
          {"all_seeds", std::move(seeds)},
          {"width", spec.size.width},
          {"height", spec.size.height},
          {"sampler_name", "Euler"},
          {"cfg_scale",
           spec.picture.guidance.empty() ? Json(nullptr) : Json(spec.picture.guidance.front())},
          {"steps", spec.steps},
          {"batch_size", spec.picture.images},
          {"sd_model_name", service.options().model_id},
          {"infotexts", std::move(texts)},
          {"job", job.id()},
          {"warnings", spec.warnings}};
}

// Pictures that were complete when a job was interrupted are an answer, too.
Json pictures_answer(const Service& service, const TextToImage& request, const Job& job) {
  const JobView view = job.view();
  const bool is_interrupted = view.state == JobState::cancelled && !view.pictures.empty();
  if (view.state != JobState::completed && !is_interrupted) throw Refused{failure_of(view)};
  Json images = Json::array();
  for (const FinishedPicture& each : view.pictures) images.push_back(to_base64(*each.file));
  return {{"images", std::move(images)},
          {"parameters", request.parameters},
          {"info", to_line(info_json(service, job, view))}};
}

std::shared_ptr<Job> submit(Context& context, const JobSpec& spec) {
  try {
    return context.service.submit(spec);
  } catch (const Refused& refused) {
    throw Refused{in_their_words(refused.failure)};
  }
}

void text_to_image(Context& context, const CallPtr& call) {
  auto request = std::make_shared<TextToImage>(
      read_text_to_image(context.service.options().limits, context.service.info(), *call));
  const std::shared_ptr<Job> job = submit(context, request->spec);
  const auto follower = context.followers.follow(job, 0);
  cancel_with_client(context, call, follower);
  const auto held = context.previews.hold(job->id());
  follower->start([&context, call, request, job, held](const JobEvent& event) {
    if (event.kind == JobEvent::Kind::preview && !job->is_cancelling()) {
      context.previews.keep(job->id(), event.preview.png);
    }
    if (event.kind != JobEvent::Kind::ended) return;
    context.guarded(call, [&] {
      http::Headers headers;
      if (!request->ignored.empty()) {
        headers.emplace_back("X-Octet-Ignored", ignored_header(request->ignored));
      }
      call->json(200, pictures_answer(context.service, *request, *job), std::move(headers));
    });
  });
}

// Such clients know no ids: what they mean is their job that runs, or else the next one.
std::shared_ptr<Job> current_job(const Context& context, const Call& call) {
  std::shared_ptr<Job> next;
  for (const auto& job : context.service.jobs_of(call.key())) {
    const JobState state = job->state();
    if (state == JobState::running) return job;
    if (state == JobState::queued) next = job;  // the oldest comes last
  }
  return next;
}

void show_progress(Context& context, const CallPtr& call) {
  const std::shared_ptr<Job> job = current_job(context, *call);
  const JobView view = job != nullptr ? job->view() : JobView();
  const RenderProgress& now = view.progress;
  const bool is_denoising = now.stage == Stage::denoise && now.total > 0;
  const double share = is_denoising ? static_cast<double>(now.done) / static_cast<double>(now.total)
                                    : static_cast<double>(now.stage == Stage::decode);
  const double eta = job != nullptr ? context.service.eta_s(*job) : 0;
  const http::Bytes preview = job != nullptr ? context.previews.of(job->id()) : nullptr;
  const std::string* const skip = call->request().parameter("skip_current_image");
  const bool shows = preview != nullptr && (skip == nullptr || *skip != "true");
  const int pictures = job != nullptr ? job->spec().picture.images : 0;
  const int steps = job != nullptr ? job->spec().steps : 0;
  const int done = std::min(static_cast<int>(std::ssize(view.pictures)), pictures);
  call->json(200, {{"progress", share},
                   {"eta_relative", std::max(eta, 0.0)},
                   {"state",
                    {{"skipped", false},
                     {"interrupted", job != nullptr && job->is_cancelling()},
                     {"job", view.id},
                     {"job_count", pictures},
                     {"job_no", done},
                     {"job_timestamp", fmt::format("{:.0f}", view.created_at)},
                     {"sampling_step", is_denoising && pictures > 0 ? now.done / pictures : 0},
                     {"sampling_steps", steps}}},
                   {"current_image", shows ? Json(to_base64(*preview)) : Json(nullptr)},
                   {"textinfo", nullptr}});
}

// Some send an empty object, some nothing.
void interrupt(Context& context, const CallPtr& call) {
  if (!call->request().body.empty()) {
    const Json body = call->body();
    Fields checked(body);
  }
  if (const auto job = current_job(context, *call)) job->cancel();
  call->json(200, Json::object());
}

}  // namespace

void add_sdapi_routes(Context& context) {
  const auto add = [&](const char* method, const char* pattern, auto answer) {
    context.router.add({.method = method,
                        .pattern = pattern,
                        .answer = [&context, answer](auto& c) { answer(context, c); }});
  };
  add("POST", "/sdapi/v1/txt2img", text_to_image);
  add("GET", "/sdapi/v1/progress", show_progress);
  add("POST", "/sdapi/v1/interrupt", interrupt);
}

}  // namespace octet::server
