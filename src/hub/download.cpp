#include "hub/download.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/file_lock.h"
#include "base/log.h"
#include "base/start_threads.h"
#include "base/stopwatch.h"
#include "formats/text.h"
#include "hub/partial_file.h"

namespace octet::hub {
namespace {

constexpr uint64_t kRangeBytes = 8 << 20;
constexpr auto kBetweenSteps = std::chrono::milliseconds(100);
constexpr auto kLockPatience = std::chrono::milliseconds(200);

// The server sent the whole file although a range was requested.
struct RangesIgnored {};

int64_t sum_of(const std::vector<Blob>& blobs) {
  int64_t sum = 0;
  for (const Blob& blob : blobs) sum += static_cast<int64_t>(blob.size);
  return sum;
}

}  // namespace

struct Download::Job {
  explicit Job(const Blob& wanted) : blob(wanted) {}
  const Blob& blob;
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<PartialFile> file;
  // Guarded by the download's mutex:
  std::vector<size_t> pending;  // ranges that nobody fetches yet, the next one last
  int in_flight = 0;
  std::string direct_url;      // where the file's URL led to; empty when unknown or too old
  bool knows_ranges = false;   // the server gave one
  bool lacks_ranges = false;   // it never did: one stream from the start
  bool needs_restart = false;  // as one stream, once no range is in flight

  const std::string& name() const { return blob.paths.front(); }
};

Download::Download(const Remote& remote, const RepoCache& cache, std::string commit,
                   std::vector<Blob> blobs, DownloadSettings settings, int64_t already_done)
    : remote_(remote),
      cache_(cache),
      commit_(std::move(commit)),
      blobs_(std::move(blobs)),
      settings_(settings),
      total_(already_done + sum_of(blobs_)),
      done_(already_done),
      unfinished_(blobs_.size()) {
  for (const Blob& blob : blobs_) jobs_.push_back(std::make_unique<Job>(blob));
}

Download::~Download() = default;

PullStep Download::step() {
  const std::lock_guard lock(mutex_);
  return {done_, total_, fetched_, checking_};
}

bool Download::is_wanted() const {
  if (tell_now_and_then_) tell_now_and_then_();
  return !stopped_;
}

// All threads must end before what was thrown is passed on: the first of it, by run().
void Download::keep_error() {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::current_exception();
  stopped_ = true;
}

void Download::tell(const OnPullStep& on_step) {
  try {
    if (!on_step || stopped_ || on_step(step())) return;
    const std::lock_guard lock(mutex_);
    was_stopped_ = stopped_ = true;
  } catch (...) {
    keep_error();
  }
}

void Download::run(const OnPullStep& on_step) {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);  // none of them ends before it is counted
    threads = start_threads(settings_.connections, [this] { work(); });
    threads_left_ = static_cast<int>(threads.size());
  }
  if (std::ssize(threads) < settings_.connections) {
    try {
      log::info("pull: no more threads can be started; {} of {} connections are used",
                std::max<ptrdiff_t>(std::ssize(threads), 1), settings_.connections);
    } catch (...) {  // the log's
      keep_error();
    }
  }
  tell(on_step);
  if (threads.empty()) {
    threads_left_ = 1;
    auto told = std::chrono::steady_clock::now();
    tell_now_and_then_ = [&] {
      if (std::chrono::steady_clock::now() - told < kBetweenSteps) return;
      tell(on_step);
      told = std::chrono::steady_clock::now();
    };
    work();
    tell_now_and_then_ = {};
  }
  for (bool is_over = false; !is_over;) {
    {
      std::unique_lock lock(mutex_);
      changed_.notify_all();
      changed_.wait_for(lock, kBetweenSteps, [this] { return threads_left_ == 0; });
      is_over = threads_left_ == 0;
    }
    if (!is_over) tell(on_step);
  }
  for (std::thread& thread : threads) thread.join();
  if (error_) std::rethrow_exception(error_);
  if (was_stopped_ && unfinished_ > 0) throw Stopped();
  if (on_step) on_step(step());
}

void Download::work() {
  try {
    HttpConnection connection({settings_.idle_seconds, [this] { return is_wanted(); },
                               [this] { return fetched_.load(); }});
    for (Task task; next(task);) {
      if (task.opens) {
        open(*task.job);
      } else {
        fetch(*task.job, task.range, connection);
      }
    }
  } catch (const Stopped&) {
    stopped_ = true;
  } catch (...) {
    keep_error();
  }
  const std::lock_guard lock(mutex_);
  --threads_left_;
  changed_.notify_all();
}

// Waits for something to do; false when nothing will come any more.
bool Download::next(Task& task) {
  std::unique_lock lock(mutex_);
  while (!stopped_ && unfinished_ > 0) {
    while (!open_jobs_.empty() && open_jobs_.front()->pending.empty()) open_jobs_.pop_front();
    if (!open_jobs_.empty()) {
      Job& job = *open_jobs_.front();
      task = {&job, false, job.pending.back()};
      job.pending.pop_back();
      ++job.in_flight;
      return true;
    }
    if (next_to_open_ < jobs_.size()) {
      task = {jobs_[next_to_open_++].get(), true, 0};
      return true;
    }
    changed_.wait_for(lock, kBetweenSteps);
  }
  return false;
}

void Download::open(Job& job) {
  const std::string lock_path = cache_.lock(job.blob.etag).string();
  for (bool was_told = false;;) {
    job.lock = std::make_unique<FileLock>(lock_path, kLockPatience);
    if (job.lock->is_held()) break;
    if (!std::exchange(was_told, true)) {
      log::info("{}: another program is fetching it; waiting", one_line(job.name()));
    }
    if (!is_wanted()) throw Stopped();
  }
  if (cache_.has_blob(job.blob.etag, job.blob.size)) {  // it came while we waited
    done_ += static_cast<int64_t>(job.blob.size);
    return close(job);
  }
  const std::string target = cache_.blob(job.blob.etag).string();
  job.file = std::make_unique<PartialFile>(target, job.blob.size, kRangeBytes);
  done_ += static_cast<int64_t>(job.file->bytes_done());
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = job.file->ranges(); i-- > 0;) {
      const PartialFile::Range range = job.file->range(i);
      if (range.begin + range.done < range.end) job.pending.push_back(i);
    }
    open_jobs_.push_back(&job);
    changed_.notify_all();
    if (!job.pending.empty()) return;
  }
  finish(job);
}

void Download::fetch(Job& job, size_t range, HttpConnection& connection) {
  uint64_t best = job.file->range(range).done;
  // Since the last progress, not since the last attempt: the pauses between attempts count.
  Stopwatch watch;
  int64_t fetched_before = fetched_;
  try {
    try_until_done(
        {settings_.retries, [this] { return is_wanted(); }},
        [&] { attempt(job, range, connection); },
        [&] {
          const uint64_t before = std::exchange(best, std::max(best, job.file->range(range).done));
          // A few bytes now and then are no progress, or this could go on for ever.
          const double due =
              static_cast<double>(kSlowestBytesPerSecond) * watch.microseconds() / 1e6;
          if (best <= before || static_cast<double>(fetched_ - fetched_before) < due) return false;
          watch = Stopwatch();
          fetched_before = fetched_;
          return true;
        });
  } catch (const RangesIgnored&) {
    log::info("{}: the server does not give parts of files; fetching it as one",
              one_line(job.name()));
    const std::lock_guard lock(mutex_);
    job.lacks_ranges = job.needs_restart = true;
    job.pending.clear();
  }
  release(job);
}

// Where in the file the bytes of the answer end, if they are those that were asked for; 0 when it
// has none. Throws when it has others.
uint64_t Download::promised_end(const HttpAnswer& head, Job& job, size_t range, bool is_whole) {
  const PartialFile::Range wanted = job.file->range(range);
  if (head.status == 200) {
    if (!is_whole) {
      const std::lock_guard lock(mutex_);
      if (!job.knows_ranges) throw RangesIgnored();
      throw Transient(one_line(job.name()) + ": the server sent all of it for a part");
    }
    const std::string length = head.header("content-length");
    check(length.empty() || length == std::to_string(job.blob.size),
          "{}: the server sends {} bytes, expected {}; pull again later", one_line(job.name()),
          one_line(length), job.blob.size);
    return job.blob.size;
  }
  if (head.status != 206) return 0;
  const uint64_t end =
      end_of_content_range(head.header("content-range"), wanted.begin + wanted.done, wanted.end,
                           job.blob.size, one_line(job.name()));
  const std::lock_guard lock(mutex_);
  job.knows_ranges = true;
  return end;
}

void Download::add(Job& job, size_t range, std::span<const std::byte> bytes) {
  job.file->append(range, bytes);
  done_ += static_cast<int64_t>(bytes.size());
  fetched_ += static_cast<int64_t>(bytes.size());
}

void Download::forget(Job& job, size_t range, uint64_t keep) {
  done_ -= static_cast<int64_t>(job.file->range(range).done - keep);
  job.file->forget(range, keep);
}

// One request for what is missing of a range.
void Download::attempt(Job& job, size_t range, HttpConnection& connection) {
  HttpRequest request;
  bool is_direct = false;
  {
    const std::lock_guard lock(mutex_);
    is_direct = !job.direct_url.empty();
    request = remote_.request(is_direct ? job.direct_url : remote_.file_url(commit_, job.name()));
    if (job.lacks_ranges && job.file->range(range).done > 0) forget(job, range, 0);
  }
  const PartialFile::Range wanted = job.file->range(range);
  const uint64_t from = wanted.begin + wanted.done;
  const bool is_whole = from == 0 && wanted.end == job.blob.size;
  if (!is_whole) request.bytes = {from, wanted.end};
  uint64_t left = 0;  // of the bytes that the answer promises
  const HttpAnswer answer = connection.send(
      request,
      [&](const HttpAnswer& head) {
        const uint64_t end = promised_end(head, job, range, is_whole);
        if (end > 0) left = end - from;
        return end > 0;
      },
      [&](std::span<const std::byte> bytes) {
        if (bytes.size() > left) {
          // An answer that does not keep its promise is not believed in the rest either.
          forget(job, range, wanted.done);
          throw Transient(
              fmt::format("{}: the server sends more bytes than it says; they are not "
                          "kept, pull again later",
                          one_line(job.name())));
        }
        add(job, range, bytes);
        left -= bytes.size();
      });
  const bool is_taken = answer.status == 200 || answer.status == 206;
  {
    // A signed address of a CDN is good for an hour or so; the file's own URL gives a new one.
    const std::lock_guard lock(mutex_);
    job.direct_url = is_taken ? answer.url : "";
  }
  if (answer.status / 100 == 4 && answer.status != 429 && is_direct) {
    throw Transient(fmt::format("{}: the server answers {}", one_line(job.name()), answer.status));
  }
  if (!is_taken) remote_.refuse(answer, job.name());
  const PartialFile::Range now = job.file->range(range);
  if (now.begin + now.done < now.end) {
    throw Transient(
        fmt::format("{}: the server sent {} bytes, expected {}; pull again later, what was "
                    "fetched is kept",
                    one_line(job.name()), now.begin + now.done - from, now.end - from));
  }
}

void Download::restart(Job& job) {
  done_ -= static_cast<int64_t>(job.file->bytes_done());
  job.file->restart_as_one();
  job.needs_restart = false;
  job.pending = {0};
  open_jobs_.push_back(&job);
}

// A range is over: the last one says what comes next.
void Download::release(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    --job.in_flight;
    if (job.in_flight > 0) return;
    if (job.needs_restart) restart(job);
    changed_.notify_all();
    if (!job.pending.empty()) return;
    checking_ = job.name();
  }
  finish(job);
  const std::lock_guard lock(mutex_);
  if (checking_ == job.name()) checking_.clear();
}

void Download::finish(Job& job) {
  const std::string digest = job.file->digest_like(job.blob.etag, [this] { return is_wanted(); });
  if (digest.empty()) throw Stopped();
  if (digest != job.blob.etag) {
    job.file->remove();
    fail(
        "{}: its content is not what the Hub lists: the digest is {}, expected {}; what was "
        "fetched of it is removed, pull again",
        one_line(job.name()), digest, job.blob.etag);
  }
  job.file->finish();
  close(job);
}

void Download::close(Job& job) {
  PartialFile::remove_leftovers(cache_.blob(job.blob.etag).string());
  for (const std::string& path : job.blob.paths) cache_.link(commit_, path, job.blob.etag);
  job.file.reset();
  job.lock.reset();
  const std::lock_guard lock(mutex_);
  --unfinished_;
  changed_.notify_all();
}

}  // namespace octet::hub
