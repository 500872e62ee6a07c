#include "backend/recording.h"

#include <utility>

#include "backend/backend.h"
#include "base/error.h"
#include "base/out_of_memory.h"

namespace octet {
namespace {

// A value for as long as this lives.
template <class T>
class Exchanged {
 public:
  Exchanged(T& place, T value) : place_(place), before_(std::exchange(place, value)) {}
  ~Exchanged() { place_ = before_; }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  T& place_;
  T before_;
};

}  // namespace

Buffer WorkMemory::allocate(size_t bytes, const Allocate& fresh) {
  if (!planned_) {
    const size_t number = plan_.add(bytes), offset = plan_.places()[number].offset;
    const bool has_place = reserved_ != nullptr && offset + bytes <= reserved_->bytes();
    std::shared_ptr<Buffer> owned;
    try {
      if (!has_place) owned = std::make_shared<Buffer>(fresh(bytes));
    } catch (...) {
      plan_.remove(number);
      throw;
    }
    std::byte* data = has_place ? reserved_->data() + offset : owned->data();
    ++in_use_;
    return Buffer(data, bytes, [owned, self = shared_from_this(), number](std::byte*) mutable {
      self->plan_.remove(number);
      --self->in_use_;
      owned.reset();
    });
  }
  const auto& places = plan_.places();
  check(next_ < places.size() && places[next_].bytes == bytes,
        "record: allocation {} takes {} bytes, and {} the first time", next_, bytes,
        next_ < places.size() ? fmt::format("took {}", places[next_].bytes) : "was not there");
  ++in_use_;
  return Buffer(block_->data() + places[next_++].offset, bytes,
                [self = shared_from_this()](std::byte*) { --self->in_use_; });
}

void WorkMemory::end() {
  check(in_use_ == 0, "record: {} allocations of the recorded work outlive it", in_use_);
  planned_ = true;
}

Recording::Recording(Backend& backend, std::function<void()> work)
    : backend_(backend), work_(std::move(work)) {}

bool Recording::reserve() {
  if (has_room_ && !memory_->has_block()) {
    try {
      memory_->set_block(backend_.work_block(memory_->planned_bytes()));
    } catch (const OutOfMemory&) {
      has_room_ = false;
    }
  }
  return has_room_;
}

void Recording::call() {
  check(backend_.work_memory_ == nullptr, "record: recorded work runs other recorded work");
  if (is_planned() && !reserve()) return work_();
  const auto memory = memory_;
  const Exchanged active(backend_.work_memory_, memory.get());
  if (!is_planned()) memory->set_reserved(backend_.work_block_.lock());
  memory->begin();
  try {
    work_();
  } catch (...) {
    if (!is_planned()) memory_ = std::make_shared<WorkMemory>();  // half a plan is useless
    throw;
  }
  memory->end();
  memory->set_reserved({});
}

void Recording::call_unwatched(const Interruption& interruption) {
  const Exchanged nobody(backend_.op_observer_, static_cast<OpObserver*>(nullptr));
  const Exchanged interrupted(backend_.interruption_, &interruption);
  call();
}

}  // namespace octet
