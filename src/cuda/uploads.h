// Copies bytes from the host to the device while other work runs there.
//
// They go on a stream of their own, through pinned pieces that the threads of the host fill: each
// thread has a few, fills one and has it copied while it fills the next. Nothing else is shared, so
// no thread waits for another, and the bus has work as long as one of them is ahead.
//
// The memory they go to is allocated in the order of that stream, too. If it were allocated in the
// order of the ops, as Device::allocate() does, a copy would have to wait for all ops called before
// it, since one of those may have been the last to use this memory.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/transfer.h"
#include "base/thread_pool.h"
#include "cuda/device.h"
#include "cuda/event.h"
#include "cuda/pinned_memory.h"

namespace octet::cuda {

class Uploads : public std::enable_shared_from_this<Uploads> {
 public:
  explicit Uploads(std::shared_ptr<Device> device);
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  // See Backend for all of them.
  Buffer upload(size_t bytes, const Fill& fill, ThreadPool* pool, size_t granule);
  Buffer allocate_pinned(size_t bytes, ThreadPool* pool);
  // By the threads of `pool` where the memory could not be pinned.
  Transfer prefetch(std::byte* device, const std::byte* pinned, size_t bytes, ThreadPool& pool);
  void wait(const Transfer& transfer);
  // The stream of the copies, which from now on wait for the ops called so far.
  cudaStream_t behind_ops();
  // After waiting for the ops: frees what they no longer use.
  void tidy_up() { free_released(0); }
  // Waits for the copies so far.
  void finish();

 private:
  struct Piece {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Event sent;  // it may be filled again
  };
  // The pieces that one thread fills in turn.
  struct Lane {
    std::vector<Piece> pieces;
    size_t turn = 0;
  };
  // Memory of an upload, released by its owner while ops that use it may still be running. It is
  // freed in the order of the copies once these ops are done: then the next upload finds it without
  // waiting for any op. (Freed in the order of the ops, it was not reused: 40 uploads of 64 MB took
  // 2.5 GB.)
  struct Release {
    Event done;
    Buffer memory;
  };
  static constexpr size_t kMostLanes = 16, kPiecesOfLane = 4;
  // How far the host may be ahead of the ops: otherwise each upload would take new memory for as
  // long as the device is busy.
  static constexpr size_t kMostReleased = size_t{256} << 20;

  Piece& next_piece(Lane& lane, size_t bytes);
  void send(std::byte* to, size_t bytes, const Fill& fill, ThreadPool* pool, size_t granule);
  // Ops called from now on come after the copies so far.
  void join();
  void release(Buffer memory) noexcept;
  void free_released(size_t bytes);

  std::shared_ptr<Device> device_;
  cudaStream_t copies_ = nullptr;
  std::vector<Lane> lanes_;
  PinnedMemory pinned_;
  Event joined_, reached_;
  std::mutex mutex_;  // buffers may end on any thread
  std::deque<Release> releases_;
  size_t released_bytes_ = 0;
};

}  // namespace octet::cuda
