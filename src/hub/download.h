// Fetches blobs into the cache: several at once, each in ranges over several connections.
//
// Threads take ranges of open files, or open the next file when no range is left. A file is open
// between taking its lock and its renaming; who finishes its last range checks its digest. No
// thread waits for a lock while ranges are left, so a file that is open always gets done, and two
// processes cannot wait for each other. Where no thread can be started, the caller's does it all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hub/cache.h"
#include "hub/listing.h"
#include "hub/remote.h"
#include "octet/pull.h"

namespace octet::hub {

struct DownloadSettings {
  int connections = 8;
  int retries = 5;
  long idle_seconds = 30;
};

class Download {
 public:
  // `already_done`: bytes that were in the cache before, for the steps.
  Download(const Remote& remote, const RepoCache& cache, std::string commit,
           std::vector<Blob> blobs, DownloadSettings settings, int64_t already_done);
  ~Download();

  // Returns when every blob is in the cache and linked. The first Error of a thread is thrown.
  void run(const OnPullStep& on_step);

  int64_t fetched_bytes() const { return fetched_; }

 private:
  struct Job;
  struct Task {
    Job* job = nullptr;
    bool opens = false;  // else fetches `range`
    size_t range = 0;
  };

  void work();
  void keep_error();
  void tell(const OnPullStep& on_step);
  bool next(Task& task);
  void open(Job& job);
  void fetch(Job& job, size_t range, HttpConnection& connection);
  void attempt(Job& job, size_t range, HttpConnection& connection);
  uint64_t promised_end(const HttpAnswer& head, Job& job, size_t range, bool is_whole);
  void add(Job& job, size_t range, std::span<const std::byte> bytes);
  void forget(Job& job, size_t range, uint64_t keep);
  void restart(Job& job);
  void release(Job& job);
  void finish(Job& job);
  void close(Job& job);
  bool is_wanted() const;
  PullStep step();

  const Remote& remote_;
  const RepoCache& cache_;
  const std::string commit_;
  const std::vector<Blob> blobs_;
  const DownloadSettings settings_;
  const int64_t total_;

  std::atomic<int64_t> done_;
  std::atomic<int64_t> fetched_{0};
  std::atomic<bool> stopped_{false};
  std::function<void()> tell_now_and_then_;  // set while the caller's thread works

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::deque<Job*> open_jobs_;  // those that may have ranges that nobody fetches yet
  size_t next_to_open_ = 0;
  size_t unfinished_;
  int threads_left_ = 0;
  std::string checking_;
  bool was_stopped_ = false;  // by on_step
  std::exception_ptr error_;
};

}  // namespace octet::hub
