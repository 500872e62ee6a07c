// /v1/jobs: requests for pictures that answer at once, and what became of them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "server/routes/context.h"
#include "server/routes/job_fields.h"
#include "server/routes/job_json.h"

namespace octet::server {
namespace {

constexpr int64_t kUsualList = 50, kLongestList = 1000;
constexpr size_t kLongList = size_t{4} << 20;  // bytes; at least one job

std::shared_ptr<Job> job_of(const Context& context, const Call& call) {
  auto job = context.service.find(call.part(0), call.key());
  if (job != nullptr) return job;
  refuse(404, "there is no job of this id, or it is somebody else's, or its results have expired",
         "id", "job_not_found");
}

std::optional<int64_t> whole_text(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

int64_t list_length(const http::Request& request) {
  const std::string* const text = request.parameter("limit");
  if (text == nullptr) return kUsualList;
  const std::optional<int64_t> number = whole_text(*text);
  if (!number || *number < 1 || *number > kLongestList) {
    refuse_field("limit", fmt::format("`limit` is no integer from 1 to {}", kLongestList));
  }
  return *number;
}

void submit_job(Context& context, const CallPtr& call) {
  const Json body = call->body();
  Fields fields(body);
  const RequestLimits& limits = context.service.options().limits;
  JobSpec spec = spec_of(*call);
  read_caption_fields(fields, limits, /*recognize=*/false, spec);
  read_picture_fields(fields, limits, spec);
  spec.preview_every =
      static_cast<int>(fields.integer("preview_every", 0, limits.steps).value_or(0));
  fields.refuse_unknown();
  const std::shared_ptr<Job> job = context.service.submit(std::move(spec));
  call->json(202, job_json(context.service, *job), {{"Location", "/v1/jobs/" + job->id()}});
}

// Where the list that follows `after` begins.
size_t list_begin(const std::vector<std::shared_ptr<Job>>& jobs, const std::string* after) {
  if (after == nullptr) return 0;
  const auto it = std::ranges::find(jobs, *after, [](const auto& job) { return job->id(); });
  if (it != jobs.end()) return static_cast<size_t>(it - jobs.begin()) + 1;
  refuse(404, "the job that `after` names is none of yours, or its results have expired", "after",
         "job_not_found");
}

void list_jobs(Context& context, const CallPtr& call) {
  const auto length = static_cast<size_t>(list_length(call->request()));
  const auto jobs = context.service.jobs_of(call->key());
  size_t at = list_begin(jobs, call->request().parameter("after")), bytes = 0;
  Json data = Json::array();
  for (; at < jobs.size() && data.size() < length && bytes < kLongList; ++at) {
    data.push_back(job_json(context.service, *jobs[at]));
    bytes += to_line(data.back()).size();
  }
  call->json(200, {{"object", "list"}, {"data", std::move(data)}, {"has_more", at < jobs.size()}});
}

void show_job(Context& context, const CallPtr& call) {
  call->json(200, job_json(context.service, *job_of(context, *call)));
}

// One that waits or runs is cancelled; one that has ended is forgotten.
void delete_job(Context& context, const CallPtr& call) {
  const std::shared_ptr<Job> job = job_of(context, *call);
  const bool had_ended = !job->cancel();
  const Json last = job_json(context.service, *job);
  if (had_ended) context.service.forget(*job);
  call->json(200, last);
}

// It never changes: a client that has it needs it no more.
void send_picture(Context& context, const CallPtr& call) {
  const std::shared_ptr<Job> job = job_of(context, *call);
  const std::optional<int64_t> index = whole_text(call->part(1));
  for (const FinishedPicture& picture : job->view().pictures) {
    if (picture.index != index) continue;
    const std::string name = fmt::format("{}-{}", job->id(), picture.index);
    const std::string tag = "\"" + name + "\"";
    http::Headers headers{{"ETag", tag}, {"Cache-Control", "private, max-age=3600, immutable"}};
    const std::string* const known = call->request().header("if-none-match");
    if (known != nullptr && known->find(tag) != std::string::npos) {
      return call->answer({.status = 304, .headers = std::move(headers)});
    }
    headers.emplace_back("Content-Type", media_type(picture.format));
    headers.emplace_back("Content-Disposition",
                         fmt::format("inline; filename=\"{}.{}\"", name, word_of(picture.format)));
    return call->answer({.headers = std::move(headers), .body = picture.file});
  }
  refuse(404, "the job has no picture of this number, or not yet", "index", "picture_not_found");
}

}  // namespace

void add_job_routes(Context& context) {
  const auto add = [&](const char* method, const char* pattern, auto answer) {
    context.router.add({.method = method,
                        .pattern = pattern,
                        .answer = [&context, answer](auto& c) { answer(context, c); }});
  };
  add("POST", "/v1/jobs", submit_job);
  add("GET", "/v1/jobs", list_jobs);
  add("GET", "/v1/jobs/{}", show_job);
  add("DELETE", "/v1/jobs/{}", delete_job);
  context.router.add({.method = "GET",
                      .pattern = "/v1/jobs/{}/pictures/{}",
                      .takes_ticket = true,
                      .answer = [&context](auto& c) { send_picture(context, c); }});
}

}  // namespace octet::server
