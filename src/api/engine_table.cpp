#include "api/engine_table.h"

#include <signal.h>

#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/fork.h"

namespace octet::api {
namespace {

std::mutex bodies_mutex;

class BodyTable {
 public:
  using Rows = std::map<const Engine*, std::shared_ptr<EngineBody>>;

  // No signal arrives while a thread has the table, so that a handler may use it.
  class Lock {
   public:
    Lock() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before_);
      bodies_mutex.lock();
    }
    ~Lock() {
      bodies_mutex.unlock();
      ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    sigset_t before_;
  };

  // Never destroyed: threads may call engines while a process exits.
  static Rows& rows() {
    static Rows* const made = [] {
      hold_during_fork<bodies_mutex>();
      return new Rows;
    }();
    return *made;
  }
};

void check_process(const EngineBody& body) {
  check(body.is_of_this_process(),
        "engine: this process was forked after the engine was loaded, and lacks the engine's "
        "threads; load one in the child");
}

}  // namespace

std::shared_ptr<EngineBody> find_body(const Engine& engine) {
  BodyTable::Rows& rows = BodyTable::rows();
  std::shared_ptr<EngineBody> found;
  {
    const BodyTable::Lock lock;
    const auto row = rows.find(&engine);
    if (row != rows.end()) found = row->second;
  }
  if (found != nullptr) check_process(*found);
  return found;
}

std::shared_ptr<EngineBody> find_or_make_body(const Engine& engine) {
  if (auto found = find_body(engine)) return found;
  BodyTable::Rows fresh;
  fresh.emplace(&engine, std::make_shared<EngineBody>());
  const BodyTable::Lock lock;
  return BodyTable::rows().insert(fresh.extract(fresh.begin())).position->second;
}

void cancel_body(const Engine& engine) noexcept {
  BodyTable::Rows& rows = BodyTable::rows();
  const BodyTable::Lock lock;
  const auto row = rows.find(&engine);
  if (row != rows.end()) row->second->cancel();
}

void move_body(const Engine& from, const Engine& to) noexcept {
  BodyTable::Rows& rows = BodyTable::rows();
  const BodyTable::Lock lock;
  auto row = rows.extract(&from);
  if (row.empty()) return;
  row.key() = &to;
  rows.insert(std::move(row));
}

void end_body(const Engine& engine) noexcept {
  BodyTable::Rows& rows = BodyTable::rows();
  BodyTable::Rows::node_type row;
  {
    const BodyTable::Lock lock;
    row = rows.extract(&engine);
  }
  if (row.empty()) return;
  if (row.mapped()->is_of_this_process()) {
    row.mapped()->close();
  } else {
    new auto(std::move(row.mapped()));  // its threads are missing: it can only be left as it is
  }
}

}  // namespace octet::api
