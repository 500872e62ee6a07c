#include "server/service/fair_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace octet::server {
namespace {

double price_of(Priority priority) {
  switch (priority) {
    case Priority::low: return 0.5;
    case Priority::high: return 2;
    default: return 1;
  }
}

}  // namespace

void FairQueue::push(Entry job, double work, double weight) {
  Key& key = keys_[job->spec().key];
  if (key.size == 0) key.had = std::max(key.had, now_);
  const Priority priority = job->spec().priority;
  key.waiting[priority].push_back({std::move(job), work, work * price_of(priority) / weight});
  ++key.size;
  ++size_;
  work_ += work;
  order_.clear();
}

FairQueue::Keys::iterator FairQueue::next(Keys& keys) {
  auto found = keys.end();
  for (auto at = keys.begin(); at != keys.end(); ++at) {
    if (at->second.size == 0) continue;
    if (found == keys.end() || at->second.had < found->second.had) found = at;
  }
  return found;
}

FairQueue::Waiting FairQueue::take(Keys& keys, Keys::iterator at, double& now) {
  Key& key = at->second;
  const auto first = key.waiting.begin();
  Waiting taken = std::move(first->second.front());
  first->second.pop_front();
  if (first->second.empty()) key.waiting.erase(first);
  --key.size;
  now = std::max(now, key.had);
  key.had += taken.share;
  // A key that waits for nothing is as good as new once the others have caught up.
  const double reached = now;
  std::erase_if(keys, [reached](const auto& each) {
    return each.second.size == 0 && each.second.had <= reached;
  });
  return taken;
}

FairQueue::Entry FairQueue::pop() {
  const auto key = next(keys_);
  if (key == keys_.end()) return nullptr;
  Waiting taken = take(keys_, key, now_);
  --size_;
  work_ = size_ == 0 ? 0 : work_ - taken.work;
  order_.clear();
  return std::move(taken.job);
}

bool FairQueue::remove(const Job& job) {
  const auto key = keys_.find(job.spec().key);
  if (key == keys_.end()) return false;
  const auto list = key->second.waiting.find(job.spec().priority);
  if (list == key->second.waiting.end()) return false;
  const auto at = std::ranges::find_if(
      list->second, [&](const Waiting& waiting) { return waiting.job.get() == &job; });
  if (at == list->second.end()) return false;
  --size_;
  work_ = size_ == 0 ? 0 : work_ - at->work;
  list->second.erase(at);
  if (list->second.empty()) key->second.waiting.erase(list);
  if (--key->second.size == 0 && key->second.had <= now_) keys_.erase(key);
  order_.clear();
  return true;
}

const std::vector<FairQueue::Entry>& FairQueue::order() const {
  if (!order_.empty() || size_ == 0) return order_;
  Keys keys = keys_;
  double now = now_;
  for (auto key = next(keys); key != keys.end(); key = next(keys)) {
    order_.push_back(take(keys, key, now).job);
  }
  positions_.clear();
  for (size_t i = 0; i < order_.size(); ++i) positions_[order_[i].get()] = static_cast<int>(i) + 1;
  return order_;
}

int FairQueue::position(const Job& job) const {
  if (order().empty()) return 0;
  const auto at = positions_.find(&job);
  return at == positions_.end() ? 0 : at->second;
}

int FairQueue::size_of(const std::string& key) const {
  const auto at = keys_.find(key);
  return at == keys_.end() ? 0 : at->second.size;
}

}  // namespace octet::server
