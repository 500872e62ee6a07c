// The engines, the queue before them and the jobs they made: everything but HTTP.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "octet/engine.h"
#include "octet/log.h"
#include "server/service/job.h"
#include "server/service/seconds_histogram.h"

namespace octet::server {

struct RequestLimits {
  int64_t pixels = int64_t{2048} * 2048;
  int steps = 100;
  int images = 4;
  size_t caption_bytes = size_t{64} << 10;
  int loras = 4;
  double seconds = 600;  // of rendering one job
};

// What a prompt in plain text becomes for this model.
struct ReadPrompt {
  std::string caption;
  std::vector<std::string> warnings;  // "left out: ..."
};

struct ServiceOptions {
  std::string name = "octet";  // of this process: job ids begin with it
  std::string model_id;        // as /v1/models calls it
  ModelOptions model;
  std::vector<std::string> devices;          // a worker each
  std::map<std::string, std::string> loras;  // that may be asked for, by name: files
  std::function<ReadPrompt(const std::string& prompt)> read_prompt;
  RequestLimits limits;
  int queue = 32;           // jobs of one key that may wait
  int queue_in_all = 4096;  // of all keys
  // Of a key: its share of the devices' time, beside 1. None: 1 for all.
  std::function<double(const std::string& key)> weight;
  double keep_s = 3600;                 // results, after the job has ended
  size_t keep_bytes = size_t{1} << 30;  // of all results
  std::string state_folder;             // with the journal; empty: jobs do not survive a restart
  bool warm_up = true;                  // a few steps are rendered before the first job
  // When a job has ended; on the thread that ends it.
  std::function<void(const Job&)> ended;
  // What only the operator sees, with the request's id or "".
  std::function<void(log::Level, const std::string& line, const std::string& request_id)> log;
};

struct WorkerState {
  std::string device;  // as it was asked for
  bool loaded = false, busy = false, failed = false;
  EngineState engine = {};
};

// Counters of everything since the start, for /metrics.
struct ServiceCounts {
  uint64_t submitted = 0, completed = 0, failed = 0, cancelled = 0, rejected = 0;
  uint64_t pictures = 0, steps = 0;
  double step_seconds = 0;                     // of all steps
  SecondsHistogram rendering;                  // of jobs, from their start to their last picture
  SecondsHistogram waiting;                    // of jobs that were started, in the queue
  double joules = 0;                           // of all devices since they were loaded; 0: unknown
  uint64_t int8_linears = 0, all_linears = 0;  // large ones of the last job's networks
  int queued = 0, running = 0, kept = 0;
  size_t kept_bytes = 0;
};

class Service {
 public:
  explicit Service(ServiceOptions options);  // begins to load
  ~Service();

  const ServiceOptions& options() const;
  bool is_ready() const;  // a worker has its model, and new jobs are taken
  bool is_draining() const;
  std::string why_not_ready() const;  // one sentence; empty: it is ready
  bool has_failed() const;            // no worker has a model, nor will have one
  std::string failure() const;        // of the first that failed, for the operator
  // Of the first worker that has loaded; throws Refused (503) before.
  EngineInfo info() const;
  std::vector<WorkerState> workers() const;
  ServiceCounts counts() const;

  // Throws Refused: 400 for a request that makes no sense, 429 when the queue is full, 503 while
  // nothing is loaded or the service ends. A repeated idempotency key gives the job of the first
  // request, as long as that has not failed; 409 if the request is another.
  std::shared_ptr<Job> submit(JobSpec spec);
  // Null if there is none of this key.
  std::shared_ptr<Job> find(const std::string& id, const std::string& key) const;
  std::shared_ptr<Job> find_by_ticket(const std::string& id, const std::string& ticket) const;
  std::vector<std::shared_ptr<Job>> jobs_of(const std::string& key) const;  // newest first
  void forget(const Job& job);  // one that has ended, with its results
  // Its place among those that wait, 1: the next; 0: it does not wait.
  int position(const Job& job) const;
  double eta_s(const Job& job) const;  // until it has ended; negative: unknown
  double retry_after_s() const;        // until a place in a full queue may be free

  // No new jobs. Those that run or wait may end within `seconds`; then they are cancelled, and
  // noted as lost in the journal.
  void drain(double seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::server
