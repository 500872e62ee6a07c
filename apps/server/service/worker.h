// One engine on one device, and the thread that renders with it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "octet/engine.h"
#include "octet/log.h"
#include "server/service/finisher.h"
#include "server/service/job.h"

namespace octet::server {

// What a worker asks of the service and tells it. Called on the worker's threads.
struct WorkerHooks {
  std::function<std::shared_ptr<Job>()> next;      // waits for a job; null: there will be none
  std::function<std::shared_ptr<Job>()> upcoming;  // what next() would give now; null: nothing
  std::function<void()> changed;                   // it has loaded, or failed
  std::function<void(double seconds)> step;        // of one denoising step
  std::function<void(const Job&, const RenderReport&, double seconds)> rendered;
  std::function<void(log::Level, const std::string& line, const std::string& request_id)> log;
};

struct WorkerOptions {
  ModelOptions model;
  bool warm_up = true;     // before the first job
  double longest_s = 600;  // of rendering one job
};

class Worker {
 public:
  Worker(const WorkerOptions& options, WorkerHooks hooks);
  void start();  // begins to load
  void end();    // asks it to stop loading; next() must not wait any more
  void join();   // until its last call of a hook
  ~Worker();

  const std::string& device() const { return model_.device; }
  const Engine& engine() const { return engine_; }
  bool is_loaded() const { return status_ == Status::loaded; }
  bool has_failed() const { return status_ == Status::failed; }
  std::string failure() const;  // one sentence, for the operator

 private:
  enum class Status : uint8_t { loading, loaded, failed };

  void run();
  void load();
  void recover();
  void render(const std::shared_ptr<Job>& job);
  RenderCallbacks callbacks_for(const std::shared_ptr<Job>& job, double begun);
  octet::Job upcoming() const;  // its texts are encoded between the steps of this one
  // After the pictures that wait to be compressed.
  void end(const std::shared_ptr<Job>& job, Failure failure);

  const ModelOptions model_;
  const bool warm_up_;
  const double longest_s_;
  const WorkerHooks hooks_;
  Engine engine_;
  std::atomic<Status> status_ = Status::loading;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::string failure_;
  Finisher finisher_;
  std::thread thread_;
};

}  // namespace octet::server
