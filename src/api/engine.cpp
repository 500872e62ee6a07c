// octet::Engine: a session behind a lock, in public types.
#include "octet/engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/free_memory.h"
#include "engine/requests.h"
#include "formats/boundary.h"

namespace octet {

// What is known about a loaded model without waiting for a call. In no unnamed namespace, since a
// member of Engine::State is one.
struct Published {
  std::shared_ptr<const engine::ModelFacts> facts;
  EngineInfo info;
  engine::WorkBytes work;
  engine::KeptTimes times;
};

namespace {

Estimate estimate_of(const Published& known, const engine::Job& job) {
  Estimate made;
  const PictureSize size = job.size();
  const double pixels = static_cast<double>(size.width) * size.height;
  made.device_bytes = known.work.of(job.extent());
  for (const PartPlace& place : known.info.plan) {
    if (place.where == Residency::device) made.device_bytes += place.bytes;
    if (place.where == Residency::host) made.host_bytes += place.bytes;
  }
  const auto& [text, evaluation, decoding] = known.times;
  if (evaluation == 0 || decoding == 0) return made;
  double tokens = 0;
  for (const size_t branch : job.branches) {
    const models::Branch& row = job.model->family.branches[branch];
    const size_t words = row.sees == models::BranchText::prompt     ? job.tokens.size()
                         : row.sees == models::BranchText::negative ? job.negative_tokens.size()
                                                                    : 0;
    for (const float by : job.schedule().guidance) {
      if (row.weight_at(by) == 0) continue;
      tokens += static_cast<double>(job.grid.tokens()) + static_cast<double>(words);
    }
  }
  made.seconds = text * static_cast<double>(job.tokens.size() + job.negative_tokens.size()) +
                 job.request.images * (evaluation * tokens + decoding * pixels);
  return made;
}

}  // namespace

struct Engine::State {
  // Exists during a call. Callbacks run inside a call and must not begin another.
  class Call {
   public:
    explicit Call(State& state, const std::stop_token& stop = {}) : state_(state) {
      octet::check(state.caller.load() != std::this_thread::get_id(),
                   "engine: a callback called its own engine, expected only functions that never "
                   "wait: cancel(), check(), estimate(), info() and state()");
      std::unique_lock lock(state.mutex);
      ++state.calls;
      state.turn.wait(lock, stop, [&] { return !state.busy || state.closing; });
      if (stop.stop_requested() || state.closing) {
        --state.calls;
        state.turn.notify_all();
        throw Cancelled("engine: stopped on request before it began");
      }
      state.busy = true;
      state.caller = std::this_thread::get_id();
      state.stop = false;
      lock.unlock();
      stopping_.emplace(stop, [&state] { state.stop = true; });
    }
    ~Call() {
      stopping_.reset();
      try {
        state_.publish();
      } catch (...) {  // what was last published still stands
      }
      const std::lock_guard lock(state_.mutex);
      state_.caller = std::thread::id();
      state_.busy = false;
      --state_.calls;
      state_.turn.notify_all();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    State& state_;
    std::optional<std::stop_callback<std::function<void()>>> stopping_;
  };

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    std::unique_lock lock(mutex);
    closing = stop = true;
    turn.notify_all();
    turn.wait(lock, [this] { return calls == 0; });
  }

  static State& of(const Engine& engine) {
    octet::check(engine.state_ != nullptr, "engine: it has been moved from");
    return *engine.state_;
  }

  engine::Session& loaded() {
    octet::check(session != nullptr, "engine: no model is loaded; call load() first");
    return *session;
  }
  void publish() {
    const std::lock_guard lock(known_mutex);
    progress = {};
    published.reset();
    backend = nullptr;
    if (session == nullptr) return;
    published = std::make_shared<const Published>(
        Published{session->facts(), session->info(), session->work_bytes(), session->kept().times});
    backend = &session->backend();
  }
  void unload() {
    const std::unique_ptr<engine::Session> before = std::move(session);
    publish();
  }
  std::shared_ptr<const Published> known() {
    const std::lock_guard lock(known_mutex);
    octet::check(published != nullptr, "engine: no model is loaded; call load() first");
    return published;
  }
  // Also notes the progress for state().
  OnRenderProgress noted(const OnRenderProgress& told) {
    return [this, told](const RenderProgress& step) {
      {
        const std::lock_guard lock(known_mutex);
        progress = step;
      }
      return !told || told(step);
    };
  }

  std::mutex mutex;
  std::condition_variable_any turn;
  int calls = 0;  // running or waiting
  bool busy = false, closing = false;
  std::atomic<std::thread::id> caller{};
  std::atomic<bool> stop{false};
  std::unique_ptr<engine::Session> session;  // belongs to the running call

  std::mutex known_mutex;  // never held for long
  std::shared_ptr<const Published> published;
  Backend* backend = nullptr;  // of the published session
  RenderProgress progress;
};

Engine::Engine() try : state_(std::make_unique<State>()) {
} catch (...) {
  rethrow_as_error();
}

Engine::Engine(const ModelOptions& options, const OnRenderProgress& progress) : Engine() {
  load(options, progress);
}

Engine::~Engine() = default;
Engine::Engine(Engine&& other) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept = default;

void Engine::load(const ModelOptions& options, const OnRenderProgress& progress, bool lazy,
                  std::stop_token stop) try {
  State& state = State::of(*this);
  const State::Call call(state, stop);
  state.unload();
  auto session = std::make_unique<engine::Session>(
      engine::SessionOptions{.model = engine::with_paths(options)}, state.stop);
  if (!lazy) session->load(state.noted(progress));
  state.session = std::move(session);
} catch (...) {
  rethrow_as_error();
}

void Engine::unload() try {
  State& state = State::of(*this);
  const State::Call call(state);
  state.unload();
} catch (...) {
  rethrow_as_error();
}

bool Engine::is_loaded() const {
  if (!state_) return false;
  const std::lock_guard lock(state_->known_mutex);
  return state_->published != nullptr;
}

Job Engine::check(const PictureRequest& request) const try {
  return Job(engine::make_job(State::of(*this).known()->facts, request));
} catch (...) {
  rethrow_as_error();
}

RenderReport Engine::render(const Job& job, const RenderCallbacks& callbacks) try {
  State& state = State::of(*this);
  octet::check(bool(job), "engine: the job is empty, expected one from check()");
  const State::Call call(state, job.request().stop);
  RenderCallbacks told = callbacks;
  told.progress = state.noted(callbacks.progress);
  return engine::render(state.loaded(), *job.checked(), told);
} catch (...) {
  rethrow_as_error();
}

Estimate Engine::estimate(const Job& job) const try {
  octet::check(bool(job), "engine: the job is empty, expected one from check()");
  return estimate_of(*State::of(*this).known(), *job.checked());
} catch (...) {
  rethrow_as_error();
}

EngineState Engine::state() const try {
  State& state = State::of(*this);
  EngineState now;
  {
    const std::lock_guard lock(state.mutex);
    now.busy = state.busy;
  }
  const std::lock_guard lock(state.known_mutex);
  now.loaded = state.published != nullptr;
  now.progress = state.progress;
  if (state.backend != nullptr) {
    const MemoryUse memory = state.backend->memory();
    now.used_bytes = memory.used;
    now.peak_bytes = std::max(memory.peak, memory.reserved_peak);
    now.free_bytes = state.backend->free_memory().value_or(
        static_cast<uint64_t>(free_memory().value_or(FreeMemory{}).bytes));
  }
  return now;
} catch (...) {
  rethrow_as_error();
}

void Engine::warm_up(PictureSize size, bool previews, std::stop_token stop) try {
  State& state = State::of(*this);
  const State::Call call(state, stop);
  state.loaded().warm_up(size, previews, state.noted({}));
} catch (...) {
  rethrow_as_error();
}

void Engine::set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress) try {
  State& state = State::of(*this);
  const State::Call call(state);
  state.loaded().set_loras(loras, state.noted(progress));
} catch (...) {
  rethrow_as_error();
}

void Engine::cancel() noexcept {
  if (state_) state_->stop = true;
}

EngineInfo Engine::info() const try { return State::of(*this).known()->info; } catch (...) {
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
