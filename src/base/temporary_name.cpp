#include "base/temporary_name.h"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <iterator>

#include "octet/tools/files.h"

namespace octet {
namespace {

// A handler may interrupt anything: no locks and no heap memory here.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> named{false};
  char path[PATH_MAX] = {};
};
Slot slots[8];
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void TemporaryName::remember(const std::string& path) {
  forget();
  if (path.size() >= sizeof(Slot::path)) return;
  for (int i = 0; i < static_cast<int>(std::size(slots)); ++i) {
    if (slots[i].taken.exchange(true)) continue;
    slot_ = i;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].named = true;
    return;
  }
}

void TemporaryName::forget() {
  if (slot_ < 0) return;
  slots[slot_].named = false;
  slots[slot_].taken = false;
  slot_ = -1;
}

void remove_temporary_files() noexcept {
  for (const Slot& slot : slots) {
    if (slot.named) ::unlink(slot.path);
  }
}

}  // namespace octet
