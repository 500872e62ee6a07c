#include "cuda/uploads.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace octet::cuda {
namespace {

cudaStream_t make_copy_stream(int device) {
  const Active active(device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return stream;
}

// An event belongs to the device that is current.
Event make_event(int device) {
  const Active active(device);
  return {};
}

}  // namespace

Uploads::Uploads(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      joined_(make_event(device_->traits().index)),
      reached_(make_event(device_->traits().index)) {
  copies_ = make_copy_stream(device_->traits().index);
}

// Errors are meaningless here: at the end of the process the driver may be gone.
Uploads::~Uploads() {
  cudaStreamSynchronize(device_->stream());
  releases_.clear();
  cudaStreamSynchronize(copies_);
  for (Lane& lane : lanes_) {
    for (Piece& piece : lane.pieces) {
      if (piece.data != nullptr) cudaFreeHost(piece.data);
    }
  }
  cudaStreamDestroy(copies_);
}

Uploads::Piece& Uploads::next_piece(Lane& lane, size_t bytes) {
  if (lane.pieces.size() < kPiecesOfLane) lane.pieces.emplace_back();
  Piece& piece = lane.pieces[lane.turn++ % kPiecesOfLane];
  piece.sent.synchronize();
  if (piece.bytes < bytes) {
    if (piece.data != nullptr) {
      piece.bytes = 0;
      check_cuda(cudaFreeHost(std::exchange(piece.data, nullptr)), "giving back pinned memory");
    }
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, bytes), "allocating pinned memory");
    piece.data = static_cast<std::byte*>(memory);
    piece.bytes = bytes;
  }
  return piece;
}

void Uploads::send(std::byte* to, size_t bytes, const Fill& fill, ThreadPool* pool,
                   size_t granule) {
  const size_t piece_bytes = upload_piece(granule);
  const size_t pieces = (bytes + piece_bytes - 1) / piece_bytes;
  std::atomic<size_t> next{0};
  const auto run_lane = [&](int64_t number, int) {
    const Active active(device_->traits().index);  // of this thread
    Lane& lane = lanes_[static_cast<size_t>(number)];
    for (size_t at = next++; at < pieces; at = next++) {
      try {
        const size_t first = at * piece_bytes, count = std::min(piece_bytes, bytes - first);
        Piece& piece = next_piece(lane, std::max(piece_bytes, kUploadPiece));
        fill(piece.data, first, count);
        check_cuda(cudaMemcpyAsync(to + first, piece.data, count, cudaMemcpyHostToDevice, copies_),
                   "uploading");
        piece.sent.record(copies_);
      } catch (...) {
        next = pieces;  // the others stop, too
        throw;
      }
    }
  };
  const size_t threads = pool == nullptr ? 1 : static_cast<size_t>(pool->threads());
  const size_t lanes = std::min({threads, pieces, kMostLanes});
  if (lanes_.size() < lanes) lanes_.resize(lanes);
  if (lanes > 1) {
    pool->run(static_cast<int64_t>(lanes), run_lane);
  } else if (lanes == 1) {
    run_lane(0, 0);
  }
}

void Uploads::join() {
  joined_.record(copies_);
  joined_.hold(device_->stream());
}

Buffer Uploads::upload(size_t bytes, const Fill& fill, ThreadPool* pool, size_t granule) {
  const Active active(device_->traits().index);
  free_released(bytes);
  // Small ones are not worth an event.
  const bool small = bytes < kUploadPiece;
  auto memory = std::make_shared<Buffer>(
      device_->allocate_on(copies_, small ? device_->stream() : copies_, bytes));
  std::byte* data = memory->data();
  // Ops wait for the copies whatever happened: the memory may be released in their order.
  try {
    send(data, bytes, fill, pool, granule);
  } catch (...) {
    join();
    throw;
  }
  join();
  return {data, bytes, [memory, small, self = shared_from_this()](std::byte*) mutable {
            if (!small) self->release(std::move(*memory));
            memory.reset();
          }};
}

void Uploads::release(Buffer memory) noexcept {
  const size_t bytes = memory.bytes();
  try {
    const Active active(device_->traits().index);
    Event done;
    done.record(device_->stream());
    const std::lock_guard lock(mutex_);
    releases_.push_back({std::move(done), std::move(memory)});
    released_bytes_ += bytes;
  } catch (...) {  // the next call reports what went wrong on the device
    cudaStreamSynchronize(device_->stream());
  }
}

void Uploads::free_released(size_t bytes) {
  const std::lock_guard lock(mutex_);
  while (!releases_.empty()) {
    const Release& oldest = releases_.front();
    if (!oldest.done.has_passed()) {
      if (released_bytes_ + bytes <= kMostReleased) break;
      oldest.done.synchronize();
    }
    released_bytes_ -= oldest.memory.bytes();
    releases_.pop_front();
  }
}

Buffer Uploads::allocate_pinned(size_t bytes, ThreadPool* pool) {
  const Active active(device_->traits().index);
  auto memory = std::make_shared<Buffer>(pinned_.allocate(bytes, pool));
  std::byte* at = memory->data();
  return {at, bytes, [memory, self = shared_from_this()](std::byte*) mutable {
            // A copy from it, or to it, may be under way.
            cudaStreamSynchronize(self->copies_);
            cudaStreamSynchronize(self->device_->stream());
            memory.reset();
          }};
}

void Uploads::finish() {
  const Active active(device_->traits().index);
  check_cuda(cudaStreamSynchronize(copies_), "waiting for copies");
}

cudaStream_t Uploads::behind_ops() {
  const Active active(device_->traits().index);
  reached_.record(device_->stream());
  reached_.hold(copies_);
  return copies_;
}

Transfer Uploads::prefetch(std::byte* device, const std::byte* pinned, size_t bytes,
                           ThreadPool& pool) {
  const Active active(device_->traits().index);
  behind_ops();
  if (pinned_.is_pageable(pinned)) {
    const Fill copy = [pinned](std::byte* into, size_t first, size_t count) {
      std::memcpy(into, pinned + first, count);
    };
    try {
      send(device, bytes, copy, &pool, 1);
    } catch (...) {
      join();  // whoever releases the memory does so behind the copies
      throw;
    }
  } else {
    check_cuda(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, copies_),
               "uploading");
  }
  auto done = std::make_shared<Event>();
  done->record(copies_);
  return {std::move(done)};
}

void Uploads::wait(const Transfer& transfer) {
  if (transfer.state == nullptr) return;
  static_cast<const Event*>(transfer.state.get())->hold(device_->stream());
}

}  // namespace octet::cuda
