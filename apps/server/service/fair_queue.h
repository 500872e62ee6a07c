// The jobs that wait, in the order in which workers take them. Not locked: the service does that.
//
// Each key has had a share of the work that was taken so far; the next job is of the key that has
// had the least, and of its jobs the one of the highest priority that has waited longest. So a key
// with a thousand jobs delays another's first one by one job. A key that had nothing to do gets no
// credit for it (start-time fair queueing, Goyal et al. 1996).
//
// Work is dearer at a high priority and cheaper at a low one: a key that always says "high" gets
// its jobs sooner now and waits longer later.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/service/job.h"

namespace octet::server {

class FairQueue {
 public:
  using Entry = std::shared_ptr<Job>;

  // `work` is of any unit, above 0; a key of weight 2 gets twice the share of one of weight 1.
  void push(Entry job, double work, double weight = 1);
  Entry pop();  // null if there is none
  // False if it does not wait.
  bool remove(const Job& job);

  // As pop() would return them, if nothing came in between.
  const std::vector<Entry>& order() const;
  int position(const Job& job) const;  // 1: the next; 0: it does not wait
  int size() const { return size_; }
  int size_of(const std::string& key) const;
  double work() const { return work_; }  // of all that wait

 private:
  struct Waiting {
    Entry job;
    double work = 0;
    double share = 0;  // of its key, that it takes
  };
  struct Key {
    std::map<Priority, std::deque<Waiting>, std::greater<>> waiting;
    double had = 0;
    int size = 0;
  };
  using Keys = std::map<std::string, Key>;
  // The one that has had the least.
  static Keys::iterator next(Keys& keys);
  static Waiting take(Keys& keys, Keys::iterator key, double& now);

  Keys keys_;       // those with jobs that wait, or that had more than the others
  double now_ = 0;  // what the key of the last job had had
  double work_ = 0;
  int size_ = 0;
  mutable std::vector<Entry> order_;  // empty: to be worked out
  mutable std::unordered_map<const Job*, int> positions_;
};

}  // namespace octet::server
