// A job of the server: one request for pictures, from the queue to its results.
//
// A job is shared by whoever looks at it: the worker that renders it, the routes that answer with
// it, the streams that follow it. All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "octet/engine.h"

namespace octet::server {

// Letters and digits that nobody can guess.
std::string random_word();
// Seconds since 1970.
double now_s();

enum class JobState : uint8_t { queued, running, completed, failed, cancelled };
enum class Priority : uint8_t { low, normal, high };

}  // namespace octet::server
template <>
struct octet::Words<octet::server::JobState> {
  using State = server::JobState;
  static constexpr Word<State> list[] = {{State::queued, "queued"},
                                         {State::running, "running"},
                                         {State::completed, "completed"},
                                         {State::failed, "failed"},
                                         {State::cancelled, "cancelled"}};
};
template <>
struct octet::Words<octet::server::Priority> {
  using P = server::Priority;
  static constexpr Word<P> list[] = {{P::low, "low"}, {P::normal, "normal"}, {P::high, "high"}};
};

namespace octet::server {

inline bool has_ended(JobState state) {
  return state != JobState::queued && state != JobState::running;
}

// What a client asked for, read and within the limits.
struct JobSpec {
  PictureRequest picture = {};          // `stop` is the job's own
  std::string prompt = {};              // plain text, if the caption was made of one
  std::vector<std::string> loras = {};  // "style:0.8", by the names of the allow-list
  PictureFormat format = PictureFormat::png;
  int quality = 95;
  int preview_every = 0;  // steps; 0: no previews
  int preview_scale = 1;  // pixels of a preview become squares of this size
  Priority priority = Priority::normal;
  std::string key = {};              // whose it is; jobs are shown to nobody else
  std::string idempotency_key = {};  // as the client sent it; empty: none
  std::string fingerprint = {};      // of the request's body: a repeated one has the same
  std::string request_id = {};
  std::vector<std::string> warnings = {};  // about the request
  // Filled in by the service, for a request that leaves them to the model.
  PictureSize size = {};
  int steps = 0;
  std::string preset = {};
  int text_tokens = 0;
  double estimate_s = -1;  // of rendering, by what its engine had measured then; negative: unknown
};

// What went wrong, in the words of OpenAI's error objects.
struct Failure {
  int status = 500;  // of the answer to a client that waits
  std::string message = {};
  std::string type = "server_error";  // or "invalid_request_error", ...
  std::string param = {};             // the field; empty: none
  std::string code = {};              // "restarted", "out_of_memory", "timeout", ...; empty: none
  int retry_after_s = 0;              // 0: none
};

// Thrown instead of a job, or of any other answer.
struct Refused {
  Failure failure;
};

struct FinishedPicture {
  int index = 0;
  uint64_t seed = 0;
  int width = 0, height = 0;
  PictureLook look = PictureLook::ordinary;
  PictureFormat format = PictureFormat::png;
  std::shared_ptr<const std::string> file = {};  // as compressed
};

struct FinishedPreview {
  int image = 0, step = 0, steps = 0;
  int width = 0, height = 0;
  std::shared_ptr<const std::string> png = {};
};

struct JobEvent {
  enum class Kind : uint8_t { queued, started, progress, preview, picture, report, ended };
  uint64_t id = 0;  // counts up from 1 in each job
  Kind kind = Kind::queued;
  RenderProgress progress = {};                     // progress
  FinishedPreview preview = {};                     // preview
  FinishedPicture picture = {};                     // picture
  std::shared_ptr<const RenderReport> report = {};  // report
};
using JobEventPtr = std::shared_ptr<const JobEvent>;

// A copy of what a job looked like at one moment.
struct JobView {
  std::string id;
  JobState state = JobState::queued;
  double created_at = 0, started_at = 0, ended_at = 0;  // 0: not yet
  RenderProgress progress = {};
  std::vector<FinishedPicture> pictures = {};
  std::shared_ptr<const RenderReport> report = {};
  std::optional<Failure> failure = {};
  std::string worker = {};  // its device; empty: none yet
};

class Job {
 public:
  Job(std::string id, JobSpec spec);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const std::string& id() const { return id_; }
  // Whoever has it may fetch the pictures without the key.
  const std::string& ticket() const { return ticket_; }
  const JobSpec& spec() const { return spec_; }
  JobState state() const;
  JobView view() const;

  // --- who follows it ---

  // Tells events after `last`, then each further one until `ended`, in order, none twice. Those
  // that newer ones have replaced are left out: queued, progress, previews. `tell` must not wait,
  // and owns what it uses: a call that is under way may end after the subscription was dropped.
  // Calls come one at a time, from any thread, under no lock of the job.
  using Tell = std::function<void(const JobEvent&)>;
  class Subscription;
  std::shared_ptr<Subscription> subscribe(uint64_t last, Tell tell);
  bool has_followers() const;

  // --- who works on it ---

  std::stop_token stop_token() const { return stop_.get_token(); }
  // False if it has already ended, or, for start(), is not queued.
  bool start(const std::string& worker);
  void tell_queued();  // its place has changed
  void tell(const RenderProgress& progress);
  void tell(FinishedPreview preview);
  void add(FinishedPicture picture);
  bool complete(std::shared_ptr<const RenderReport> report);
  bool fail(Failure failure);
  // Asks the worker to stop; a job that waits has ended when this returns. False if it had ended.
  bool cancel();
  // The same for another reason than the client's wish: the job fails.
  void abort(Failure why);
  bool is_cancelling() const;
  // By the worker, when it has stopped: cancelled, or failed for the reason of abort().
  bool end_stopped();
  // Called once with the job when it ends, by the thread that ends it, under no lock; before the
  // event is told. To be set before anybody else knows the job.
  void on_end(std::function<void(Job&)> ended);

  // Pictures and previews, in memory.
  size_t bytes() const;
  // One from before a restart, which has ended.
  static std::shared_ptr<Job> former(std::string id, JobSpec spec, double created_at,
                                     JobState state, std::optional<Failure> why);

 private:
  bool end(JobState state, std::optional<Failure> failure,
           std::shared_ptr<const RenderReport> report, bool only_if_queued = false);
  void append(JobEvent event);  // under the lock
  void wake();                  // without it
  std::vector<JobEventPtr> events_after(uint64_t last) const;

  const std::string id_, ticket_;
  const JobSpec spec_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::optional<Failure> aborted_;
  JobView view_;
  uint64_t last_event_ = 0;
  std::vector<JobEventPtr> events_;  // those that nothing newer has replaced
  std::vector<std::weak_ptr<Subscription>> followers_;
  std::function<void(Job&)> on_end_;
};

}  // namespace octet::server
