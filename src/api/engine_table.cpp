#include "api/engine_table.h"

#include <signal.h>

#include <mutex>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/fork.h"

namespace octet::api {
namespace {

constinit std::mutex table_mutex;

// No signal arrives while a thread has the table, so that a handler may use it.
class TableLock {
 public:
  TableLock() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    table_mutex.lock();
  }
  ~TableLock() {
    table_mutex.unlock();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

 private:
  sigset_t before_;
};

// A list: engines are few. Moving and destroying them must not need memory, and any code of other
// libraries may do that before main() or after it.
struct Row {
  const Engine* engine = nullptr;
  std::shared_ptr<EngineBody> body = {};
  Row* next = nullptr;
};
constinit Row* first_row = nullptr;

// All of these with the lock.
Row** link_to(const Engine& engine) {
  Row** link = &first_row;
  while (*link != nullptr && (*link)->engine != &engine) link = &(*link)->next;
  return link;
}
Row* row_of(const Engine& engine) { return *link_to(engine); }
void add_row(Row* row, const Engine& engine) {
  row->engine = &engine;
  row->next = std::exchange(first_row, row);
}

void close(std::shared_ptr<EngineBody> body) {
  if (body == nullptr) return;
  if (body->is_of_this_process()) {
    body->close();
  } else {
    body->keep_for_ever(body);  // its threads are missing: it can only be left as it is
  }
}

void check_is_engine(bool is_engine) {
  check(is_engine, "engine: this is no engine; it has been destroyed, or never was one");
}

void check_process(const EngineBody& body) {
  check(body.is_of_this_process(),
        "engine: this process was forked after the engine was loaded, and lacks the engine's "
        "threads; load one in the child");
}

}  // namespace

void add_engine(const Engine& engine) {
  [[maybe_unused]] static const bool held = (hold_during_fork<table_mutex>(), true);
  auto made = std::make_unique<Row>();
  std::shared_ptr<EngineBody> left;  // by one whose memory was used again without its destructor
  {
    const TableLock lock;
    if (Row* row = row_of(engine)) {
      left = std::move(row->body);
    } else {
      add_row(made.release(), engine);
    }
  }
  close(std::move(left));
}

bool end_engine(const Engine& engine) noexcept {
  std::unique_ptr<Row> row;
  {
    const TableLock lock;
    Row** const link = link_to(engine);
    row.reset(*link);
    if (row != nullptr) *link = row->next;
  }
  if (row == nullptr) return false;
  close(std::move(row->body));
  return true;
}

void move_engine(const Engine& from, const Engine& to) noexcept {
  std::unique_ptr<Row> made(new (std::nothrow) Row);
  std::shared_ptr<EngineBody> before;
  {
    const TableLock lock;
    Row* const source = row_of(from);
    if (row_of(to) == nullptr && made != nullptr) add_row(made.release(), to);
    if (Row* const target = row_of(to)) {
      before = std::exchange(target->body, source != nullptr ? std::move(source->body) : nullptr);
    } else if (source != nullptr) {
      source->engine = &to;
    }
  }
  close(std::move(before));
}

std::shared_ptr<EngineBody> find_body(const Engine& engine) {
  std::shared_ptr<EngineBody> found;
  bool is_engine = false;
  {
    const TableLock lock;
    if (const Row* row = row_of(engine)) {
      is_engine = true;
      found = row->body;
    }
  }
  check_is_engine(is_engine);
  if (found != nullptr) check_process(*found);
  return found;
}

std::shared_ptr<EngineBody> find_or_make_body(const Engine& engine) {
  if (auto found = find_body(engine)) return found;
  auto made = std::make_shared<EngineBody>();
  bool is_engine = false;
  {
    const TableLock lock;
    if (Row* row = row_of(engine)) {
      is_engine = true;
      if (row->body != nullptr) {
        made = row->body;
      } else {
        row->body = made;
      }
    }
  }
  check_is_engine(is_engine);
  return made;
}

void cancel_body(const Engine& engine) noexcept {
  const TableLock lock;
  const Row* const row = row_of(engine);
  if (row != nullptr && row->body != nullptr) row->body->cancel();
}

}  // namespace octet::api
