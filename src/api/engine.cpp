// octet::Engine: a session that is called in turns, in public types.
#include "octet/engine.h"

#include <algorithm>
#include <stop_token>
#include <utility>

#include "api/engine_body.h"
#include "api/engine_table.h"
#include "base/error.h"
#include "engine/requests.h"
#include "formats/boundary.h"

namespace octet {
namespace {

// Of all evaluations of these branches.
double tokens_of(const engine::Job& job, const std::vector<size_t>& branches) {
  double tokens = 0;
  for (const size_t branch : branches) {
    const models::Branch& row = job.model->family.branches[branch];
    const size_t words = row.sees == models::BranchText::prompt     ? job.tokens.size()
                         : row.sees == models::BranchText::negative ? job.negative_tokens.size()
                                                                    : 0;
    for (const float by : job.schedule().guidance) {
      if (row.weight_at(by) == 0) continue;
      tokens += static_cast<double>(job.grid.tokens()) + static_cast<double>(words);
    }
  }
  return tokens;
}

Estimate estimate_of(const api::Published& known, const engine::Job& job) {
  job.check_is_for(known.facts);
  Estimate made;
  const PictureSize size = job.size();
  const double pixels = static_cast<double>(size.width) * size.height;
  for (const engine::WorkBytes& work : known.work) made.device_bytes += work.of(job.extent());
  for (const PartPlace& place : known.info.plan) {
    if (place.where == Residency::device) made.device_bytes += place.bytes;
    if (place.where == Residency::host) made.host_bytes += place.bytes;
  }
  const auto& [text, evaluation, decoding] = known.times;
  if (evaluation == 0 || decoding == 0) return made;
  double tokens = 0;  // of the device that has most to do
  for (const std::vector<size_t>& share : job.model->shares) {
    tokens = std::max(tokens, tokens_of(job, share));
  }
  made.seconds = text * static_cast<double>(job.tokens.size() + job.negative_tokens.size()) +
                 job.request.images * (evaluation * tokens + decoding * pixels);
  return made;
}

std::shared_ptr<api::EngineBody> loaded_body(const Engine& engine) {
  auto body = api::find_body(engine);
  octet::check(body != nullptr, "engine: no model is loaded; call load() first");
  return body;
}

}  // namespace

Engine::Engine() try { api::add_engine(*this); } catch (...) {
  rethrow_as_error();
}

Engine::Engine(const ModelOptions& options, const OnRenderProgress& progress) : Engine() {
  load(options, progress);
}

Engine::~Engine() { api::end_engine(*this); }

Engine::Engine(Engine&& other) noexcept { api::move_engine(other, *this); }

Engine& Engine::operator=(Engine&& other) noexcept {
  if (this != &other) api::move_engine(other, *this);
  return *this;
}

void Engine::load(const ModelOptions& options, const OnRenderProgress& progress, bool lazy,
                  std::stop_token stop) try {
  api::EngineBody::Call(api::find_or_make_body(*this), stop).load(options, progress, lazy);
} catch (...) {
  rethrow_as_error();
}

void Engine::unload() try {
  if (auto body = api::find_body(*this)) api::EngineBody::Call(std::move(body)).unload();
} catch (...) {
  rethrow_as_error();
}

bool Engine::is_loaded() const try {
  const auto body = api::find_body(*this);
  return body != nullptr && body->is_loaded();
} catch (const Error&) {  // it was, in the process that this one was forked from
  return false;
}

Job Engine::check(const PictureRequest& request) const try {
  return Job(engine::make_job(loaded_body(*this)->known()->facts, request));
} catch (...) {
  rethrow_as_error();
}

RenderReport Engine::render(const Job& job, const RenderCallbacks& callbacks) try {
  octet::check(bool(job), "engine: the job is empty, expected one from check()");
  api::EngineBody::Call call(loaded_body(*this), job.request().stop);
  RenderCallbacks told = callbacks;
  told.progress = call.noted(callbacks.progress);
  RenderReport report = engine::render(call.session(), *job.checked(), told);
  call.end();
  return report;
} catch (...) {
  rethrow_as_error();
}

Estimate Engine::estimate(const Job& job) const try {
  octet::check(bool(job), "engine: the job is empty, expected one from check()");
  return estimate_of(*loaded_body(*this)->known(), *job.checked());
} catch (...) {
  rethrow_as_error();
}

EngineState Engine::state() const try {
  const auto body = api::find_body(*this);
  return body != nullptr ? body->state() : EngineState{};
} catch (...) {
  rethrow_as_error();
}

void Engine::warm_up(PictureSize size, bool previews, std::stop_token stop) try {
  api::EngineBody::Call call(loaded_body(*this), stop);
  call.session().warm_up(size, previews, call.noted({}));
  call.end();
} catch (...) {
  rethrow_as_error();
}

void Engine::set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress) try {
  const api::EngineBody::Call call(loaded_body(*this));
  call.session().set_loras(loras, call.noted(progress));
} catch (...) {
  rethrow_as_error();
}

void Engine::cancel() noexcept { api::cancel_body(*this); }

EngineInfo Engine::info() const try { return loaded_body(*this)->info(); } catch (...) {
  rethrow_as_error();
}

const PictureRequest& Job::request() const { return checked_->request; }
PictureSize Job::size() const { return checked_->size(); }
LatentShape Job::latents() const { return checked_->latents(); }
int Job::steps() const { return checked_->schedule().steps(); }
int Job::text_tokens() const { return static_cast<int>(checked_->tokens.size()); }
const std::vector<std::string>& Job::branches() const { return checked_->branch_names; }
const std::vector<Sentence>& Job::warnings() const { return checked_->warnings; }

}  // namespace octet
