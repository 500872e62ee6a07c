// One GPU as this process uses it: what it is, its stream, its memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "backend/caller.h"
#include "backend/memory_counter.h"
#include "cuda/device_traits.h"
#include "tensor/tensor.h"

namespace octet::cuda {

// Makes a device current, and the one before it again at the end: the caller may have chosen its
// own.
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
  // `stream`: of the caller, or null for one of its own.
  Device(int index, cudaStream_t stream);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceTraits& traits() const { return traits_; }
  cudaStream_t stream() const {
    return caller_ == nullptr ? stream_ : static_cast<cudaStream_t>(caller_->stream);
  }
  // From now on, work goes to this caller's stream, and memory comes from there; null: no more.
  void visit(Caller* caller) { caller_ = caller; }
  Caller* caller() const { return caller_; }

  // From a pool that keeps what is freed: steady work asks the driver for nothing. Memory is ready
  // for work on the stream, in order, and so is its release. Rounded up to 256 bytes, of which all
  // may be read. When there is too little, gives back what the pool keeps and tries once more; an
  // Error for lack of memory leaves the device usable. Refused while work is captured.
  // A caller's memory is not released here.
  Buffer allocate(size_t bytes) {
    if (caller_ != nullptr) return {caller_->take(bytes), bytes, {}};
    return allocate_on(stream_, stream_, bytes);
  }
  // What an op needs until its end: from whoever runs recorded work, else as above.
  Buffer allocate_scratch(size_t bytes) { return scratch_ ? scratch_(bytes) : allocate(bytes); }
  void set_scratch(std::function<Buffer(size_t)> scratch) { scratch_ = std::move(scratch); }
  // Memory that is kept and grows: `buffer`, at least so large; of a caller, new each time.
  std::byte* at_least(Buffer& buffer, size_t bytes);
  // Changes with each that grew: work that was recorded before still knows its old place.
  uint64_t generation() const { return generation_; }
  // As allocate(), ready for work on one stream and released in the order of another.
  Buffer allocate_on(cudaStream_t user, cudaStream_t releaser, size_t bytes);
  // Bytes that allocate() may still hand out: free ones, and those that the pool keeps.
  uint64_t free_memory() const;
  MemoryUse memory() const;
  void reset_peak();

  // Through pinned memory, in chunks, the copying of one overlapping the transfer of another. The
  // host's bytes may change when upload() returns, and are there when download() does.
  void upload(std::byte* device, const std::byte* host, size_t bytes);
  void download(std::byte* host, const std::byte* device, size_t bytes);

  void synchronize();
  // How often the host waited, see Backend::waits().
  int64_t waits() const { return waits_; }
  void count_wait() { ++waits_; }
  // Whether what the stream is given is recorded, and not done.
  bool is_capturing() const;

  // Memory that the pool keeps for later, to the driver: after work that needed much, once.
  void give_back_unused();

  // Microseconds of `work` on the stream, the L2 emptied of its operands before. The emptying keeps
  // the device busy while `work` is launched, so launching is not part of the time.
  double time_cold_us(const std::function<void()>& work);
  // The same without emptying anything: for work long enough to hide its first launch.
  double time_us(const std::function<void()>& work);

 private:
  struct Pinned {
    std::byte* data = nullptr;
    cudaEvent_t free = nullptr;  // when the transfer that uses it is done
  };
  static constexpr size_t kPinnedBytes = size_t{4} << 20;

  cudaError_t try_to_allocate(void** memory, size_t bytes, cudaStream_t user);
  void prepare_pinned();
  void release_all() noexcept;

  DeviceTraits traits_;
  cudaStream_t stream_ = nullptr;
  Caller* caller_ = nullptr;
  bool owns_stream_ = false;
  cudaMemPool_t pool_ = nullptr;  // null: the device has no pools
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
