// Work that runs several times on the same views: the steps of a picture.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "backend/memory_plan.h"
#include "tensor/tensor.h"

namespace octet {

class Backend;

// The memory of such work: planned in its first run, and one block from the second on. It belongs
// to the buffers, too, that came of it.
class WorkMemory : public std::enable_shared_from_this<WorkMemory> {
 public:
  using Allocate = std::function<Buffer(size_t bytes)>;

  bool is_planned() const { return planned_; }
  size_t planned_bytes() const { return plan_.bytes(); }
  // For the first run: what lies in it when it is planned is taken from there at once.
  void set_reserved(std::shared_ptr<Buffer> block) { reserved_ = std::move(block); }
  bool has_block() const { return block_ != nullptr; }
  void set_block(std::shared_ptr<Buffer> block) { block_ = std::move(block); }

  void begin() { next_ = 0; }
  // `fresh`: of memory that is not planned yet.
  Buffer allocate(size_t bytes, const Allocate& fresh);
  // After a run that succeeded; throws Error when some of its memory is still in use.
  void end();

 private:
  MemoryPlan plan_;
  bool planned_ = false;
  std::shared_ptr<Buffer> block_;  // that recordings share which run in turn
  std::shared_ptr<Buffer> reserved_;
  size_t next_ = 0;     // of the plan's places
  int64_t in_use_ = 0;  // buffers
};

// Of Backend::record(). By itself it calls the work each time, and only allocates once.
class Recording {
 public:
  Recording(Backend& backend, std::function<void()> work);
  virtual ~Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The same work again. Throws Error when the work keeps memory that it allocated, or allocates
  // otherwise than before.
  virtual void run() { call(); }
  // Kernels and copies that a run launches once it no longer calls the work; otherwise 0.
  virtual int64_t launches() const { return 0; }

 protected:
  // The work itself, with its memory.
  void call();
  // The same without an observer, and with `interruption` in the place of unrecorded work.
  using Interruption = std::function<void(const std::function<void()>&)>;
  void call_unwatched(const Interruption& interruption);
  bool is_planned() const { return memory_->is_planned(); }
  // Takes what was planned, so that call() takes nothing. False when there is too little memory for
  // it in one piece: then the work is called, with memory of its own each time.
  bool reserve();

 private:
  Backend& backend_;
  std::function<void()> work_;
  std::shared_ptr<WorkMemory> memory_ = std::make_shared<WorkMemory>();
  bool has_room_ = true;  // for what was planned
};

}  // namespace octet
