// One GPU as this process uses it: what it is, its stream, its memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/caller.h"
#include "backend/memory_counter.h"
#include "cuda/device_traits.h"
#include "tensor/tensor.h"

namespace octet::cuda {

// Makes a device current, and restores the previous one at the end, which may be the caller's
// choice.
class Active {
 public:
  explicit Active(int device);
  ~Active();
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  int device_;
  int before_ = 0;
};

// A stream and the memory that is ordered by it. Buffers keep it alive.
class Device : public std::enable_shared_from_this<Device> {
 public:
  // `stream`: the caller's, or null for one of its own.
  // `memory_limit`: bytes that this process may take of the device, 0: all.
  Device(int index, cudaStream_t stream, uint64_t memory_limit = 0);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceTraits& traits() const { return traits_; }
  cudaStream_t stream() const {
    return caller_ == nullptr ? stream_ : static_cast<cudaStream_t>(caller_->stream);
  }
  // From now on, work goes to this caller's stream and memory comes from the caller; null: ends it.
  void visit(Caller* caller) { caller_ = caller; }
  Caller* caller() const { return caller_; }

  // From a pool that keeps freed memory: steady work asks the driver for nothing. Allocation and
  // release follow the order of the stream. Rounded up to a multiple of 256 bytes, all of which may
  // be read. If there is too little, returns what the pool keeps to the driver and tries once more;
  // an Error for lack of memory leaves the device usable. Refused while work is captured.
  // A caller's memory is not released here.
  Buffer allocate(size_t bytes) {
    if (caller_ != nullptr) return {caller_->take(bytes), bytes, {}};
    return allocate_on(stream_, stream_, bytes);
  }
  // Memory for the duration of an op: from whoever runs recorded work, otherwise as above.
  Buffer allocate_scratch(size_t bytes) { return scratch_ ? scratch_(bytes) : allocate(bytes); }
  void set_scratch(std::function<Buffer(size_t)> scratch) { scratch_ = std::move(scratch); }
  // Memory that is kept and grows: `buffer`, with at least this size; for a caller, new each time.
  std::byte* at_least(Buffer& buffer, size_t bytes);
  // Changes whenever one grew: work that was recorded before still uses its old address.
  // Memory that no recorded work uses grows without.
  uint64_t generation() const { return generation_; }
  std::byte* at_least_unrecorded(Buffer& buffer, size_t bytes);
  // As allocate(), but ready for work on one stream and released in the order of another.
  Buffer allocate_on(cudaStream_t user, cudaStream_t releaser, size_t bytes);
  Backend::MemoryLimit limit() const { return limit_; }
  // Bytes that allocate() can still provide: free ones, and those that the pool keeps.
  uint64_t free_memory() const;
  MemoryUse memory() const;
  void reset_peak();

  // Through pinned memory, in chunks: the copy of one overlaps with the transfer of another. The
  // host's bytes may change once upload() has returned, and are complete once download() has.
  void upload(std::byte* device, const std::byte* host, size_t bytes);
  void download(std::byte* host, const std::byte* device, size_t bytes);

  void synchronize();
  // How often the host waited, see Backend::waits().
  int64_t waits() const { return waits_; }
  void count_wait() { ++waits_; }
  // Whether work on the stream is recorded instead of run.
  bool is_capturing() const;

  // Returns the memory that the pool keeps to the driver, after one-time work that needed much.
  void give_back_unused();

  // Microseconds of `work` on the stream after flushing the L2. The flush keeps the device busy
  // while `work` is launched, so launching is not part of the time.
  double time_cold_us(const std::function<void()>& work);
  // The same without a flush, for work long enough to hide its first launch.
  double time_us(const std::function<void()>& work);

 private:
  struct Pinned {
    std::byte* data = nullptr;
    cudaEvent_t free = nullptr;  // when the transfer that uses it is done
  };
  static constexpr size_t kPinnedBytes = size_t{4} << 20;

  uint64_t of_context(uint64_t before) const;
  cudaError_t try_to_allocate(void** memory, size_t bytes, cudaStream_t user);
  void prepare_pinned();
  void release_all() noexcept;

  DeviceTraits traits_;
  cudaStream_t stream_ = nullptr;
  Caller* caller_ = nullptr;
  bool owns_stream_ = false;
  cudaMemPool_t pool_ = nullptr;  // null: the device has no pools
  Backend::MemoryLimit limit_;
  std::shared_ptr<MemoryCounter> counter_ = std::make_shared<MemoryCounter>();
  Pinned pinned_[2];
  size_t uploads_ = 0;  // chunks so far: they take turns with the pinned memory
  std::function<Buffer(size_t)> scratch_;
  uint64_t generation_ = 0;
  int64_t waits_ = 0;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::byte* flush_ = nullptr;
  size_t flush_bytes_ = 0;
};

}  // namespace octet::cuda
