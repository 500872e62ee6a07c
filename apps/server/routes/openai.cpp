// POST /v1/images/generations as OpenAI's clients send it.
#include "server/routes/openai.h"

#include <algorithm>
#include <utility>

#include "server/routes/base64.h"
#include "server/routes/job_json.h"

namespace octet::server {
namespace {

std::string link_to(const Context& context, const Call& call, const Job& job, int index) {
  std::string start = context.options.public_address;
  if (start.empty()) {
    const std::string* const host = call.request().header("host");
    start = (context.options.tls ? "https://" : "http://") + (host ? *host : "localhost");
  }
  // Such links are given to browsers, which have no key.
  const std::string ticket = context.access.keys != nullptr ? "?ticket=" + job.ticket() : "";
  return start + picture_path(job, index) + ticket;
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
  return {
      {"created", static_cast<int64_t>(view.created_at)},
      {"data", std::move(data)},
      {"output_format", word_of(spec.format)},
      {"size", size_text(spec.size)},
      {"quality", request.quality},
      {"background", "opaque"},
      {"usage", usage_json(spec, static_cast<int>(std::ssize(view.pictures)), request.token_side)},
      {"octet", {{"job", job.id()}, {"warnings", spec.warnings}}}};
}

void answer_images(Context& context, const CallPtr& call, const ImageRequest& request,
                   const std::shared_ptr<Job>& job) {
  const auto follower = context.followers.follow(job, 0);
  cancel_with_client(context, call, follower);
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
  const Service& service = context.service;
  const ServiceOptions& options = service.options();
  const ImageRequest request =
      read_image_request(options.limits, options.model_id, service.info(), *call);
  const std::shared_ptr<Job> job = context.service.submit(request.spec);
  request.stream ? stream_images(context, call, request, job)
                 : answer_images(context, call, request, job);
}

}  // namespace

Json usage_json(const JobSpec& spec, int pictures, int token_side) {
  const int64_t side = std::max(token_side, 1);
  const int64_t text = spec.text_tokens;
  const int64_t image = (spec.size.width / side) * (spec.size.height / side) * pictures;
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

void cancel_with_client(Context& context, const CallPtr& call,
                        const std::shared_ptr<Follower>& follower) {
  const auto cancel = [weak = std::weak_ptr(follower)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    if (alive->job()->spec().idempotency_key.empty()) alive->job()->cancel();
    alive->leave();
  };
  // A job that waits ends in here, which is written to the journal: no thread that serves
  // connections may wait for a disk.
  call->on_gone([&context, cancel] {
    context.executor.post([&context, cancel] { context.unattended(cancel); });
  });
}

void add_openai_routes(Context& context) {
  context.router.add(
      {.method = "POST",
       .pattern = "/v1/images/generations",
       .answer = [&context](const CallPtr& call) { generate_images(context, call); }});
}

}  // namespace octet::server
