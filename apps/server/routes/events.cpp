// /v1/jobs/{}/events: a job as a stream of server-sent events, from the beginning or from the last
// one that the client has seen.
#include <fmt/format.h>

#include <utility>

#include "server/routes/base64.h"
#include "server/routes/context.h"
#include "server/routes/job_json.h"
#include "server/routes/sse.h"

namespace octet::server {
namespace {

struct NamedEvent {
  std::string name;
  Json data;
};

Json preview_json(const FinishedPreview& preview) {
  return {{"image", preview.image},
          {"step", preview.step},
          {"steps", preview.steps},
          {"width", preview.width},
          {"height", preview.height},
          {"format", "png"},
          {"b64_json", to_base64(*preview.png)}};
}

Json running_json(const RenderProgress& progress) {
  Json json = progress_json(progress);
  json["step_s"] = progress.seconds > 0 ? Json(progress.seconds) : Json(nullptr);
  json["eta_s"] = seconds_or_null(progress.eta_s);
  return json;
}

NamedEvent named_event(const Service& service, const Job& job, const JobEvent& event) {
  using Kind = JobEvent::Kind;
  switch (event.kind) {
    case Kind::queued: {
      const int position = service.position(job);
      return {"queued",
              {{"position", position > 0 ? Json(position) : Json(nullptr)},
               {"eta_s", seconds_or_null(service.eta_s(job))}}};
    }
    case Kind::started: return {"started", {{"worker", job.view().worker}}};
    case Kind::progress: return {"progress", running_json(event.progress)};
    case Kind::preview: return {"preview", preview_json(event.preview)};
    case Kind::picture: return {"picture", picture_json(job, event.picture)};
    case Kind::report: return {"report", report_json(job.spec(), *event.report)};
    default: return {word_of(job.state()), job_json(service, job)};
  }
}

bool can_be_left_out(JobEvent::Kind kind) {
  return kind == JobEvent::Kind::progress || kind == JobEvent::Kind::preview;
}

void follow_job(Context& context, const CallPtr& call) {
  const uint64_t last = last_event_id(call->request());
  const std::shared_ptr<Job> job = context.service.find(call->part(0), call->key());
  if (job == nullptr) refuse(404, "there is no job of this id", "id", "job_not_found");
  if (call->request().method == "HEAD") {
    return call->answer({.headers = {{"Content-Type", "text/event-stream"}}});
  }
  const bool had_ended = has_ended(job->state());
  const auto follower = context.followers.follow(job, last);
  if (had_ended && !follower->has_events()) {
    // A browser asks again after each end of a stream, unless there is nothing more to come.
    follower->leave();
    return call->answer({.status = 204});
  }
  const std::shared_ptr<http::Stream> stream = call->event_stream();
  call->on_gone([weak = std::weak_ptr(follower)] {
    if (const auto alive = weak.lock()) alive->leave();
  });
  context.keep_alive.add(stream);
  follower->start([&service = context.service, job, stream](const JobEvent& event) {
    if (can_be_left_out(event.kind) && is_slow(*stream)) return;
    const NamedEvent named = named_event(service, *job, event);
    stream->write(sse_event(named.name, to_line(named.data), event.id));
    if (event.kind == JobEvent::Kind::ended) stream->end();
  });
}

}  // namespace

void add_event_routes(Context& context) {
  context.router.add({.method = "GET",
                      .pattern = "/v1/jobs/{}/events",
                      .answer = [&context](const CallPtr& call) { follow_job(context, call); }});
}

}  // namespace octet::server
