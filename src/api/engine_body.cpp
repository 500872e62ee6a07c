#include "api/engine_body.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octet::api {

EngineBody::Call::Call(std::shared_ptr<EngineBody> body, const std::stop_token& stop)
    : body_(std::move(body)) {
  EngineBody& on = *body_;
  check(on.caller_.load() != std::this_thread::get_id(),
        "engine: a callback called its own engine, expected only functions that never "
        "wait: cancel(), check(), estimate(), info() and state()");
  std::unique_lock lock(on.mutex_);
  ++on.calls_;
  on.turn_.wait(lock, stop, [&] { return !on.busy_ || on.closing_; });
  if (stop.stop_requested() || on.closing_) {
    --on.calls_;
    on.turn_.notify_all();
    throw Cancelled("engine: stopped on request before it began");
  }
  on.busy_ = true;
  on.caller_ = std::this_thread::get_id();
  on.stop_ = false;
  lock.unlock();
  stopping_.emplace(stop, [&on] { on.stop_ = true; });
}

EngineBody::Call::~Call() {
  stopping_.reset();
  publish();
  {
    const std::lock_guard known(body_->known_mutex_);
    body_->loading_ = false;
    body_->progress_ = {};
  }
  const std::lock_guard lock(body_->mutex_);
  body_->caller_ = std::thread::id();
  body_->busy_ = false;
  --body_->calls_;
  body_->turn_.notify_all();
}

engine::Session& EngineBody::Call::session() const {
  check(body_->session_ != nullptr, "engine: no model is loaded; call load() first");
  return *body_->session_;
}

void EngineBody::Call::load(const ModelOptions& options, const OnRenderProgress& progress,
                            bool lazy) {
  {
    const std::lock_guard lock(body_->known_mutex_);
    body_->loading_ = true;
  }
  body_->unload();
  auto session = std::make_unique<engine::Session>(
      engine::SessionOptions{.model = engine::with_paths(options)}, body_->stop_);
  if (!lazy) session->load(noted(progress));
  auto energy = std::make_shared<EnergyCount>(gauges_of(session->backends()));
  body_->session_ = std::move(session);
  try {
    body_->publish();
    {
      const std::lock_guard lock(body_->known_mutex_);
      body_->energy_ = std::move(energy);
    }
    published_ = true;
    end();
  } catch (...) {
    body_->unload();
    throw;
  }
}

void EngineBody::Call::publish() noexcept {
  if (std::exchange(published_, true)) return;
  try {
    body_->publish();
  } catch (...) {  // what was last published still stands
  }
}

void EngineBody::Call::end() {
  publish();
  if (body_->stop_.exchange(false)) throw Cancelled("engine: stopped on request");
}

OnRenderProgress EngineBody::Call::noted(const OnRenderProgress& told) const {
  return [body = body_.get(), told](const RenderProgress& step) {
    {
      const std::lock_guard lock(body->known_mutex_);
      body->progress_ = step;
    }
    return !told || told(step);
  };
}

void EngineBody::close() {
  std::unique_lock lock(mutex_);
  closing_ = stop_ = true;
  turn_.notify_all();
  if (caller_.load() == std::this_thread::get_id()) return;
  turn_.wait(lock, [this] { return calls_ == 0; });
  lock.unlock();
  unload();
}

void EngineBody::publish() {
  std::shared_ptr<const Published> made;
  std::vector<Backend*> backends;
  if (session_ != nullptr) {
    std::vector<engine::WorkBytes> work;
    for (size_t i = 0; i < session_->device_count(); ++i) {
      work.push_back(session_->denoiser(i).work);
      backends.push_back(session_->backends()[i].get());
    }
    made = std::make_shared<const Published>(
        Published{session_->facts(), session_->info(), std::move(work), session_->kept().times});
  }
  const std::lock_guard lock(known_mutex_);
  published_ = std::move(made);
  backends_ = std::move(backends);
}

void EngineBody::unload() {
  const std::unique_ptr<engine::Session> before = std::move(session_);
  const std::lock_guard lock(known_mutex_);
  published_.reset();
  backends_.clear();
  energy_.reset();
}

std::shared_ptr<const Published> EngineBody::known() const {
  const std::lock_guard lock(known_mutex_);
  return known_now();
}

std::shared_ptr<const Published> EngineBody::known_now() const {
  check(published_ != nullptr || !loading_, "engine: a model is being loaded; wait for load()");
  check(published_ != nullptr, "engine: no model is loaded; call load() first");
  return published_;
}

bool EngineBody::is_loaded() const {
  const std::lock_guard lock(known_mutex_);
  return published_ != nullptr;
}

EngineState EngineBody::state() const {
  EngineState now;
  {
    const std::lock_guard lock(mutex_);
    now.busy = busy_;
  }
  std::shared_ptr<EnergyCount> energy;
  {
    const std::lock_guard lock(known_mutex_);
    energy = energy_;
  }
  // The driver is asked while nobody waits for the lock.
  if (energy != nullptr) now.joules = energy->joules();
  const std::lock_guard lock(known_mutex_);
  now.loaded = published_ != nullptr;
  now.progress = progress_;
  for (const Backend* backend : backends_) {
    const MemoryUse memory = backend->memory();
    now.used_bytes += memory.used;
    now.peak_bytes += std::max(memory.peak, memory.reserved_peak);
    // A memory that two devices share is counted once.
    if (backend == backends_.front() || backend->name() != backends_.front()->name()) {
      now.free_bytes += static_cast<uint64_t>(engine::free_for_work(*backend));
    }
  }
  return now;
}

EngineInfo EngineBody::info() const {
  const std::lock_guard lock(known_mutex_);
  EngineInfo info = known_now()->info;
  if (!backends_.empty()) info.used_bytes = 0;
  for (const Backend* backend : backends_) info.used_bytes += backend->memory().used;
  return info;
}

}  // namespace octet::api
