// What becomes of a request before it is a job.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "server/service/failures.h"
#include "server/service/service_state.h"

namespace octet::server {
namespace {

// Throws Refused unless `value` is at most `most`.
void check_limit(int64_t value, int64_t most, const char* field, const char* what) {
  if (value <= most) return;
  throw Refused{wrong_field(field, "`" + std::string(field) + "`: " + std::to_string(value) + " " +
                                       what + ", expected at most " + std::to_string(most) +
                                       ", the limit of this server")};
}

std::vector<Lora> loras_of(const JobSpec& spec, const std::map<std::string, std::string>& allowed) {
  std::vector<Lora> loras;
  for (const std::string& text : spec.loras) {
    Lora lora = parse_lora(text);
    const auto at = allowed.find(lora.file);
    if (at == allowed.end()) {
      std::string names;
      for (const auto& [name, file] : allowed) names += (names.empty() ? "" : ", ") + name;
      throw Refused{wrong_field(
          "lora", "`lora`: " + lora.file + " is none of this server's, expected " +
                      (names.empty() ? "none: it offers no LoRAs" : "one of " + names))};
    }
    lora.file = at->second;
    loras.push_back(std::move(lora));
  }
  return loras;
}

}  // namespace

double work_of(const JobSpec& spec) {
  constexpr double kMillion = 1e6;
  const double pixels = static_cast<double>(spec.size.width) * spec.size.height;
  return std::max(spec.steps * spec.picture.images * pixels / kMillion, 1e-3);
}

JobSpec Service::State::read(JobSpec spec) const {
  const Engine& engine = loaded_engine();
  const RequestLimits& limits = options.limits;
  try {
    PictureRequest& picture = spec.picture;
    check_limit(static_cast<int64_t>(std::max(spec.prompt.size(), picture.caption.size())),
                static_cast<int64_t>(limits.caption_bytes),
                spec.prompt.empty() ? "json_prompt" : "prompt", "bytes of text");
    check_limit(static_cast<int64_t>(picture.negative.size()),
                static_cast<int64_t>(limits.caption_bytes), "negative_prompt", "bytes of text");
    check_limit(picture.images, limits.images, "n", "pictures");
    check_limit(picture.steps, limits.steps, "steps", "steps");
    check_limit(std::ssize(picture.guidance), limits.steps, "guidance", "values");
    check_limit(int64_t{picture.size.width} * picture.size.height, limits.pixels, "size", "pixels");
    check_limit(std::ssize(spec.loras), limits.loras, "lora", "LoRAs");
    if (picture.caption.empty()) {
      ReadPrompt read = options.read_prompt(spec.prompt);
      picture.caption = std::move(read.caption);
      for (std::string& each : read.warnings) spec.warnings.push_back(std::move(each));
    }
    picture.loras = loras_of(spec, options.loras);
    const octet::Job checked = engine.check(picture);
    for (const Sentence& each : checked.warnings()) spec.warnings.push_back(each.text());
    spec.size = checked.size();
    spec.steps = checked.steps();
    spec.text_tokens = checked.text_tokens();
    spec.estimate_s = engine.estimate(checked).seconds;
    spec.preset = picture.preset.empty() ? engine.info().presets.front().name : picture.preset;
    check_limit(spec.steps, limits.steps, picture.steps > 0 ? "steps" : "preset", "steps");
    check_limit(int64_t{spec.size.width} * spec.size.height, limits.pixels, "size", "pixels");
    return spec;
  } catch (const InvalidRequest& error) {
    Failure failure = wrong_request(error);
    if (failure.param == "json_prompt" && !spec.prompt.empty()) failure.param = "prompt";
    throw Refused{std::move(failure)};
  } catch (const Error& error) {
    options.log(log::Level::warning, error.what(), spec.request_id);
    throw Refused{engine.is_loaded() ? unexpected(spec.request_id) : still_loading()};
  }
}

// A job that failed or was cancelled is no answer to somebody who asks again.
std::shared_ptr<Job> Service::State::earlier(const JobSpec& spec) const {
  if (spec.idempotency_key.empty()) return nullptr;
  const auto at = idempotent.find({spec.key, spec.idempotency_key});
  if (at == idempotent.end()) return nullptr;
  auto job = at->second.lock();
  if (job == nullptr) return nullptr;
  const JobState now = job->state();
  if (now == JobState::failed || now == JobState::cancelled) return nullptr;
  if (job->spec().fingerprint == spec.fingerprint) return job;
  throw Refused{{.status = 409,
                 .message = "this Idempotency-Key came with another request before; use a new one "
                            "for each request",
                 .type = "invalid_request_error",
                 .code = "idempotency_key_reused"}};
}

void Service::State::refuse_if_full(const JobSpec& spec) const {
  const bool is_own = queue.size_of(spec.key) >= options.queue;
  if (!is_own && queue.size() < options.queue_in_all) return;
  throw Refused{{.status = 429,
                 .message = is_own ? "the queue is full: " + std::to_string(options.queue) +
                                         " of your jobs wait already; ask again later"
                                   : "the queue of this server is full; ask again later",
                 .type = "rate_limit_error",
                 .code = "queue_full",
                 .retry_after_s = static_cast<int>(std::ceil(retry_after_s()))}};
}

void Service::State::note_time(const JobSpec& spec, double seconds) {
  constexpr double kNewest = 0.3;
  const auto follow = [&](double& mean, double newest) {
    mean = mean == 0 ? newest : (1 - kNewest) * mean + kNewest * newest;
  };
  follow(seconds_per_work, seconds / work_of(spec));
  if (spec.estimate_s > 0) follow(beside_estimate, seconds / spec.estimate_s);
}

double Service::State::seconds_of(const JobSpec& spec) const {
  if (spec.estimate_s > 0) return spec.estimate_s * (beside_estimate > 0 ? beside_estimate : 1);
  return seconds_per_work > 0 ? work_of(spec) * seconds_per_work : -1;
}

double Service::State::seconds_left(const Job& job) const {
  const JobView view = job.view();
  if (view.progress.eta_s >= 0) return view.progress.eta_s;
  const double all = seconds_of(job.spec());
  if (all < 0 || view.started_at == 0) return all;  // unknown, or its worker is about to begin
  return std::max(all - (now_s() - view.started_at), 0.0);
}

double Service::State::seconds_until(const Job& last) const {
  double sum = 0;
  bool is_known = true;
  const auto add = [&](double seconds) {
    is_known = is_known && seconds >= 0;
    sum += seconds;
  };
  for (const auto& [id, job] : running) add(seconds_left(*job));
  for (const auto& job : queue.order()) {
    add(seconds_of(job->spec()));
    if (job.get() == &last) break;
  }
  return is_known ? sum / static_cast<double>(workers.size()) : -1;
}

// Until the next job is taken from the queue.
double Service::State::retry_after_s() const {
  constexpr double kLeast = 1, kMost = 600;
  double seconds = 0;
  for (const auto& [id, job] : running) seconds += std::max(seconds_left(*job), 0.0);
  return std::clamp(seconds / static_cast<double>(workers.size()), kLeast, kMost);
}

}  // namespace octet::server
