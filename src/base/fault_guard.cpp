#include "base/fault_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/fork.h"

namespace octet {

// An entry of the table. Entries are reused and never freed, so that the handler can walk the
// table at any time; `version` is odd while one is being changed.
struct FaultGuard::Range {
  std::atomic<uint32_t> version{0};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> faulted{false};
  bool is_used = false;  // under the table's mutex
  Range* next = nullptr;

  void set(uintptr_t new_begin, uintptr_t new_end) {
    ++version;
    begin = new_begin;
    end = new_end;
    faulted = false;
    ++version;
  }
};

namespace {

using Range = FaultGuard::Range;

// What a signal handler may touch.
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uintptr_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<Range*>::is_always_lock_free);

std::atomic<Range*> first_range{nullptr};
std::mutex table_mutex;  // for changes of the table
uintptr_t page_bytes = 0;
struct sigaction previous_action = {};

// Zeros from the faulting page to the end of its range: nothing is left after the end of a file.
// mmap() is not on POSIX's list of what a handler may call; on Linux it is a bare system call.
bool put_zeros(uintptr_t address) {
  for (Range* range = first_range; range != nullptr; range = range->next) {
    const uint32_t version = range->version;
    const uintptr_t begin = range->begin, end = range->end;
    const bool is_stable = version % 2 == 0 && version == range->version;
    if (!is_stable || address < begin || address >= end) continue;
    range->faulted = true;
    const uintptr_t page = address / page_bytes * page_bytes;
    return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const bool was_sent = info->si_code <= 0;  // by kill() or raise(), not by a fault
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler == SIG_IGN && was_sent) {
    return;
  } else if (previous_action.sa_handler == SIG_DFL || previous_action.sa_handler == SIG_IGN) {
    // A fault is repeated when the handler returns, and ends the process where it happened.
    ::signal(signal, SIG_DFL);
    if (was_sent) ::raise(signal);
  } else {
    previous_action.sa_handler(signal);
  }
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error_number = errno;
  const bool is_fault = info->si_code > 0;  // only then si_addr is an address
  const bool done = is_fault && put_zeros(reinterpret_cast<uintptr_t>(info->si_addr));
  if (!done) pass_on(signal, info, context);
  errno = error_number;
}

void install_handler() {
  hold_during_fork<table_mutex>();
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  // Store the old one first: a signal may come in between.
  if (::sigaction(SIGBUS, nullptr, &previous_action) != 0 ||
      ::sigaction(SIGBUS, &action, nullptr) != 0) {
    fail("a handler for SIGBUS cannot be installed: {}", system_error_text(errno));
  }
}

Range* unused_range() {
  for (Range* range = first_range; range != nullptr; range = range->next) {
    if (!range->is_used) return range;
  }
  auto* made = new Range;
  made->next = first_range;
  first_range = made;
  return made;
}

}  // namespace

FaultGuard::FaultGuard(const std::byte* begin, size_t bytes) {
  static std::once_flag installed;
  std::call_once(installed, install_handler);
  const std::lock_guard lock(table_mutex);
  range_ = unused_range();
  range_->is_used = true;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  range_->set(address, address + bytes);
}

FaultGuard::~FaultGuard() {
  if (range_ == nullptr) return;
  const std::lock_guard lock(table_mutex);
  range_->set(0, 0);
  range_->is_used = false;
}

FaultGuard::FaultGuard(FaultGuard&& other) noexcept
    : range_(std::exchange(other.range_, nullptr)) {}

FaultGuard& FaultGuard::operator=(FaultGuard&& other) noexcept {
  std::swap(range_, other.range_);
  return *this;
}

bool FaultGuard::faulted() const { return range_ != nullptr && range_->faulted; }

}  // namespace octet
