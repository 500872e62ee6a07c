// What the service consists of. One lock guards all of it but the workers; it is never held while a
// job ends or an engine is asked.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "server/service/fair_queue.h"
#include "server/service/journal.h"
#include "server/service/service.h"
#include "server/service/worker.h"

namespace octet::server {

// Steps times pixels of all pictures, in millions: what keys' shares are reckoned by.
double work_of(const JobSpec& spec);

struct Service::State {
  explicit State(ServiceOptions options);
  ~State();

  // Jobs that may be asked for: all that wait or run, and those that have ended until they are too
  // old or too many. If they are too many, the oldest of the keys that keep more than their share
  // go first: one client cannot drive out the results of another.
  // The job that is in the table then: another if a request with the same key came first.
  std::shared_ptr<Job> add(const std::shared_ptr<Job>& job);
  void note_end(Job& job);
  void forget(const std::string& id);  // under the lock
  void sweep();
  void keep(const std::shared_ptr<Job>& job);  // likewise; it has ended
  void restore();
  void note_in_journal(Job& job);
  void note_forgotten(const Job& job);

  // Throws Refused.
  JobSpec read(JobSpec spec) const;
  const Engine& loaded_engine() const;
  std::shared_ptr<Job> next();
  std::shared_ptr<Job> upcoming();
  std::shared_ptr<Job> earlier(const JobSpec& spec) const;  // under the lock
  void refuse_if_full(const JobSpec& spec) const;           // under the lock
  double retry_after_s() const;                             // likewise
  // Likewise; negative: unknown, as nothing of the kind was measured yet.
  double seconds_of(const JobSpec& spec) const;         // of rendering
  double seconds_left(const Job& job) const;            // of one that runs
  double seconds_until(const Job& last) const;          // until this one, which waits, has ended
  void note_time(const JobSpec& spec, double seconds);  // likewise: one was rendered
  double weight_of(const std::string& key) const {
    return options.weight ? options.weight(key) : 1;
  }
  void tell_places();
  void fail_waiting(const Failure& why);
  void end_all();

  const ServiceOptions options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  FairQueue queue;
  std::unordered_map<std::string, std::shared_ptr<Job>> jobs;
  std::map<std::string, std::shared_ptr<Job>> running;
  struct Ended {
    std::shared_ptr<Job> job;
    size_t bytes = 0;
  };
  struct Kept {
    std::deque<Ended> jobs;  // oldest first
    size_t bytes = 0;
  };
  std::map<std::string, Kept> ended;  // by key; none is empty
  size_t ended_count = 0, ended_bytes = 0;
  // By key and idempotency key; weak, because forgotten jobs may be asked for anew.
  std::map<std::pair<std::string, std::string>, std::weak_ptr<Job>> idempotent;
  ServiceCounts counts;
  double seconds_per_work = 0;  // as measured; 0: unknown
  double beside_estimate = 0;   // what jobs took, of the engine's estimate; 0: unknown
  bool draining = false, ending = false;
  std::unique_ptr<Journal> journal;
  std::mutex journal_mutex;
  std::vector<std::unique_ptr<Worker>> workers;
  std::thread sweeper;
};

}  // namespace octet::server
