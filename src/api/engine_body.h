// What is behind an octet::Engine: a session, the turns of those who call it, and what is known
// about it without waiting.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "api/energy_count.h"
#include "base/fork.h"
#include "base/uncancelled.h"
#include "engine/requests.h"
#include "octet/rendering.h"

namespace octet::api {

// What is known about a loaded model.
struct Published {
  std::shared_ptr<const engine::ModelFacts> facts;
  EngineInfo info;
  std::vector<engine::WorkBytes> work;  // of each device
  engine::KeptTimes times;
};

// Calls share it with the engine, so that it outlives an engine that ends meanwhile.
class EngineBody {
 public:
  // Exists during a call. Callbacks run inside a call and must not begin another.
  class Call {
   public:
    explicit Call(std::shared_ptr<EngineBody> body, const std::stop_token& stop = {});
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    EngineBody& body() const { return *body_; }
    engine::Session& session() const;  // throws Error without a model

    void load(const ModelOptions& options, const OnRenderProgress& progress, bool lazy);
    void unload() { body_->unload(); }
    // Behind all that it does: publishes that, and throws Cancelled if anybody has ended the call
    // by now. Whoever ends it later finds that it has ended.
    void end();
    // The caller's function, which also notes the progress for state(). Lives as long as the call.
    OnRenderProgress noted(const OnRenderProgress& told) const;

   private:
    void publish() noexcept;  // once

    Uncancelled uncancelled_;
    std::shared_ptr<EngineBody> body_;
    bool published_ = false;
    std::optional<std::stop_callback<std::function<void()>>> stopping_;
  };

  // Ends the running call and those that wait for their turn, waits for them and releases the
  // model. Within a callback of the running call it does not wait: the model is released with it.
  void close();
  void cancel() noexcept { stop_ = true; }

  // None of these waits for a call. known() throws Error without a model.
  std::shared_ptr<const Published> known() const;
  bool is_loaded() const;
  EngineState state() const;
  EngineInfo info() const;

  bool is_of_this_process() const { return forks_ == fork_count(); }
  // Never destroys it. Takes no memory, as destructors need it.
  void keep_for_ever(std::shared_ptr<EngineBody> self) { self_ = std::move(self); }

 private:
  void publish();
  void unload();
  std::shared_ptr<const Published> known_now() const;  // with known_mutex_ held

  mutable std::mutex mutex_;
  std::condition_variable_any turn_;
  int calls_ = 0;  // running or waiting
  bool busy_ = false, closing_ = false;
  std::atomic<std::thread::id> caller_{};
  std::atomic<bool> stop_{false};
  std::unique_ptr<engine::Session> session_;  // belongs to the running call

  mutable std::mutex known_mutex_;  // never held for long
  std::shared_ptr<const Published> published_;
  std::vector<Backend*> backends_;  // of the published session
  std::shared_ptr<EnergyCount> energy_;
  bool loading_ = false;
  RenderProgress progress_;

  uint32_t forks_ = fork_count();
  std::shared_ptr<EngineBody> self_;
};

}  // namespace octet::api
