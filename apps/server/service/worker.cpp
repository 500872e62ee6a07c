#include "server/service/worker.h"

#include <exception>
#include <utility>

#include "server/service/failures.h"

namespace octet::server {
namespace {

// A task of the finisher: what goes wrong in it is the job's failure.
template <class Work>
Finisher::Task guarded(const std::shared_ptr<Job>& job, const WorkerHooks& hooks, Work work) {
  return [job, &hooks, work = std::move(work)]() mutable {
    try {
      work();
    } catch (const std::exception& error) {
      hooks.log(log::Level::warning, error.what(), job->spec().request_id);
      job->fail(unexpected(job->spec().request_id));
    }
  };
}

FinishedPicture finished(const Picture& picture, const JobSpec& spec) {
  const std::vector<uint8_t> file = encode_picture(picture, spec.format, spec.quality);
  return {.index = picture.index,
          .seed = picture.seed,
          .width = picture.width,
          .height = picture.height,
          .look = picture.look,
          .format = spec.format,
          .file = std::make_shared<const std::string>(file.begin(), file.end())};
}

FinishedPreview finished(const Preview& preview, int scale) {
  const std::vector<uint8_t> png = encode_png(preview, scale);
  return {.image = preview.image,
          .step = preview.step,
          .steps = preview.steps,
          .width = preview.width * scale,
          .height = preview.height * scale,
          .png = std::make_shared<const std::string>(png.begin(), png.end())};
}

}  // namespace

Worker::Worker(const WorkerOptions& options, WorkerHooks hooks)
    : model_(options.model),
      warm_up_(options.warm_up),
      longest_s_(options.longest_s),
      hooks_(std::move(hooks)) {}

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::end() { stop_.request_stop(); }

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

Worker::~Worker() {
  end();
  join();
}

std::string Worker::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Worker::run() {
  load();
  while (is_loaded()) {
    const std::shared_ptr<Job> job = hooks_.next();
    if (job == nullptr) return;
    render(job);
  }
}

void Worker::load() {
  status_ = Status::loading;
  try {
    engine_.load(model_, {}, /*lazy=*/false, stop_.get_token());
    if (warm_up_) engine_.warm_up({}, /*previews=*/true, stop_.get_token());
    status_ = Status::loaded;
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = error.what();
    }
    status_ = Status::failed;
    if (!stop_.stop_requested()) hooks_.log(log::Level::warning, error.what(), "");
  }
  hooks_.changed();
}

// Most errors are of one request: a few steps show whether the device still works. If it does not,
// a fresh start mends it or shows that it cannot be mended.
void Worker::recover() {
  try {
    engine_.warm_up({}, /*previews=*/false, stop_.get_token());
  } catch (const std::exception&) {
    load();
  }
}

void Worker::render(const std::shared_ptr<Job>& job) {
  if (!job->start(model_.device)) return;
  const std::string& request_id = job->spec().request_id;
  const double begun = now_s();
  try {
    PictureRequest request = job->spec().picture;
    request.stop = job->stop_token();
    const RenderReport report = engine_.render(engine_.check(request), callbacks_for(job, begun));
    hooks_.rendered(*job, report, now_s() - begun);
    finisher_.post(guarded(job, hooks_, [job, report] {
      job->complete(std::make_shared<const RenderReport>(report));
    }));
  } catch (const Cancelled&) {
    finisher_.post([job] { job->end_stopped(); });
  } catch (const InvalidRequest& error) {
    end(job, wrong_request(error));
  } catch (const OutOfMemory& error) {
    hooks_.log(log::Level::warning, error.what(), request_id);
    end(job, out_of_memory());
  } catch (const std::exception& error) {
    hooks_.log(log::Level::warning, error.what(), request_id);
    end(job, unexpected(request_id));
    recover();
  }
}

void Worker::end(const std::shared_ptr<Job>& job, Failure failure) {
  finisher_.post([job, failure = std::move(failure)] { job->fail(failure); });
}

RenderCallbacks Worker::callbacks_for(const std::shared_ptr<Job>& job, double begun) {
  const JobSpec& spec = job->spec();
  RenderCallbacks callbacks;
  callbacks.progress = [this, job, begun](const RenderProgress& progress) {
    if (progress.stage == Stage::denoise && progress.seconds > 0) hooks_.step(progress.seconds);
    job->tell(progress);
    if (now_s() - begun > longest_s_) job->abort(took_too_long(longest_s_));
    return true;
  };
  if (spec.preview_every > 0) {
    callbacks.preview_every = spec.preview_every;
    callbacks.preview = [this, job](const Preview& preview) {
      // Nobody misses one that comes late.
      constexpr size_t kBusy = 4;
      if (finisher_.waiting() >= kBusy) return;
      finisher_.post(guarded(job, hooks_, [job, preview] {
        job->tell(finished(preview, job->spec().preview_scale));
      }));
    };
  }
  callbacks.upcoming = [this] { return upcoming(); };
  callbacks.picture = [this, job](const Picture& picture) {
    finisher_.post(
        guarded(job, hooks_, [job, picture] { job->add(finished(picture, job->spec())); }));
  };
  return callbacks;
}

// What is wrong with it is said when its turn has come.
octet::Job Worker::upcoming() const {
  const std::shared_ptr<Job> job = hooks_.upcoming();
  if (job == nullptr) return {};
  try {
    return engine_.check(job->spec().picture);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace octet::server
