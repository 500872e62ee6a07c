#include "cuda/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/context_bytes.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/out_of_memory.h"
#include "cuda/check.h"
#include "cuda/cuda_devices.h"
#include "cuda/nvml_gauge.h"

namespace octet::cuda {

DeviceTraits read_traits(int index) {
  const CudaDevices found = find_cuda_devices();
  check(found.problem.empty(), "device cuda:{}: {}", index, found.problem);
  check(index >= 0 && index < static_cast<int>(found.devices.size()),
        "device cuda:{}: there are {} GPUs, cuda:0 to cuda:{}", index, found.devices.size(),
        found.devices.size() - 1);
  const CudaDevice& device = found.devices[static_cast<size_t>(index)];
  const std::string reason = why_unsupported(device.major, device.minor);
  check(reason.empty(), "device cuda:{}: {}: {}; use `device` cpu", index, device.name, reason);
  DeviceTraits traits;
  traits.index = index;
  traits.name = device.name;
  traits.major = device.major;
  traits.minor = device.minor;
  traits.multiprocessors = device.multiprocessors;
  traits.shared_bytes_per_block = static_cast<int>(device.shared_bytes_per_block);
  traits.driver = found.driver;
  traits.toolkit = found.runtime;
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrL2CacheSize, index), "asking for the L2");
  traits.l2_bytes = value;
  check_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, index), "asking for the clock");
  traits.clock_ghz = value * 1e-6;
  return traits;
}

Active::Active(int device) : device_(device) {
  check_cuda(cudaGetDevice(&before_), "asking for the current device");
  if (before_ == device) return;
  check_cuda(cudaSetDevice(device), "choosing the device");
}

// Only if it differs: choosing a device makes a context on it.
Active::~Active() {
  if (before_ != device_ && cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
}

Device::Device(int index, cudaStream_t stream, uint64_t memory_limit)
    : traits_(read_traits(index)), stream_(stream) {
  limit_.bytes = memory_limit;
  const uint64_t before = memory_limit == 0 ? 0 : used_memory(index);
  const Active active(index);
  try {
    if (stream_ == nullptr) {
      check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
      owns_stream_ = true;
    }
    check_cuda(cudaEventCreate(&begin_), "making an event");
    check_cuda(cudaEventCreate(&end_), "making an event");
    int has_pools = 0;
    check_cuda(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, index),
               "asking for memory pools");
    if (has_pools != 0) {
      cudaMemPoolProps properties = {};
      properties.allocType = cudaMemAllocationTypePinned;
      properties.location = {cudaMemLocationTypeDevice, index};
      if (memory_limit > 0) {
        limit_.unavailable = of_context(before);
        // The driver itself refuses more, also to a pool that is in pieces.
        // It rounds up to its own pieces.
        constexpr size_t kPiece = size_t{32} << 20;
        properties.maxSize =
            std::max(static_cast<size_t>(limit_.usable()) / kPiece * kPiece, kPiece);
      }
      check_cuda(cudaMemPoolCreate(&pool_, &properties), "making a memory pool");
      uint64_t keep = UINT64_MAX;
      check_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
                 "setting up the memory pool");
      // Else a stream for copies would wait for ops, to get memory that they are about to release.
      int no_waiting = 0;
      check_cuda(
          cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no_waiting),
          "setting up the memory pool");
    }
  } catch (...) {
    release_all();
    throw;
  }
}

// What the context has taken, and what its kernels take once they are loaded, when they first run.
uint64_t Device::of_context(uint64_t before) const {
  const uint64_t used = used_memory(traits_.index);
  // Other programs may have taken some of it meanwhile.
  const uint64_t taken = used > before ? used - before : kUsualContextBytes;
  return std::min(taken, 2 * kUsualContextBytes) + kKernelBytes;
}

Device::~Device() {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(traits_.index);
  cudaStreamSynchronize(stream_);
  release_all();
  cudaSetDevice(before);
}

void Device::release_all() noexcept {
  if (flush_ != nullptr) cudaFree(flush_);
  for (Pinned& pinned : pinned_) {
    if (pinned.data != nullptr) cudaFreeHost(pinned.data);
    if (pinned.free != nullptr) cudaEventDestroy(pinned.free);
  }
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
  if (owns_stream_) cudaStreamDestroy(stream_);
}

cudaError_t Device::try_to_allocate(void** memory, size_t bytes, cudaStream_t user) {
  const cudaError_t status = pool_ != nullptr ? cudaMallocFromPoolAsync(memory, bytes, pool_, user)
                                              : cudaMalloc(memory, bytes);
  if (status != cudaSuccess) cudaGetLastError();  // clears it: the next call must not see it
  return status;
}

Buffer Device::allocate_on(cudaStream_t user, cudaStream_t releaser, size_t bytes) {
  const Active active(traits_.index);
  // It would belong to the graph, and vanish with it.
  check(user != stream_ || !is_capturing(), "cuda: memory is taken while work is recorded");
  // Never zero bytes: a view without elements still needs an address.
  const size_t rounded =
      static_cast<size_t>(std::max<int64_t>(round_up(static_cast<int64_t>(bytes), 256), 256));
  void* memory = nullptr;
  cudaError_t status = try_to_allocate(&memory, rounded, user);
  if (status == cudaErrorMemoryAllocation) {
    give_back_unused();
    status = try_to_allocate(&memory, rounded, user);
  }
  if (status == cudaErrorMemoryAllocation) {
    const auto gigabytes = [](size_t count) { return static_cast<double>(count) * 1e-9; };
    if (limit_.bytes > 0 && this->memory().used + rounded > limit_.usable()) {
      throw OutOfMemory(sentence(
          "cuda:{}: `max_memory` is {:.3f} GB, of which the GPU's context takes {:.3f} and {:.3f} "
          "are in use, and {:.3f} more were requested; allow more, or use a smaller `size`",
          traits_.index, gigabytes(limit_.bytes), gigabytes(limit_.unavailable),
          gigabytes(this->memory().used), gigabytes(bytes)));
    }
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "asking for the free memory");
    throw OutOfMemory(sentence(
        "cuda:{}: out of memory: {:.3f} GB were requested, {:.3f} of {:.1f} GB are free; use a "
        "smaller `size`, or close other programs that use this GPU",
        traits_.index, gigabytes(bytes), gigabytes(free), gigabytes(total)));
  }
  check_cuda(status, fmt::format("allocating {:.1f} MB", static_cast<double>(bytes) * 1e-6));
  // The device outlives its buffers.
  return counter_->count({static_cast<std::byte*>(memory), bytes,
                          [device = shared_from_this(), releaser](std::byte* at) {
                            if (device->pool_ != nullptr) {
                              cudaFreeAsync(at, releaser);
                            } else {
                              cudaFree(at);
                            }
                          }});
}

std::byte* Device::at_least(Buffer& buffer, size_t bytes) {
  if (caller_ != nullptr) return caller_->take(bytes);
  if (buffer.bytes() < bytes) ++generation_;
  return at_least_unrecorded(buffer, bytes);
}

std::byte* Device::at_least_unrecorded(Buffer& buffer, size_t bytes) {
  if (buffer.bytes() < bytes) buffer = allocate(bytes);
  return buffer.data();
}

bool Device::is_capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  // A caller's default stream is never captured, and must not be queried while others are.
  if (stream() == nullptr || stream() == cudaStreamLegacy) return false;
  check_cuda(cudaStreamIsCapturing(stream(), &status), "asking whether work is recorded");
  return status != cudaStreamCaptureStatusNone;
}

uint64_t Device::free_memory() const {
  const Active active(traits_.index);
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "asking for the free memory");
  uint64_t reserved = 0, used = 0;
  if (pool_ != nullptr) {
    check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved),
               "asking for the memory in reserve");
    check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used),
               "asking for the memory in use");
  }
  const uint64_t available = free + (reserved - used);
  if (limit_.bytes == 0) return available;
  return std::min(available, limit_.usable() - std::min(limit_.usable(), used));
}

MemoryUse Device::memory() const {
  MemoryUse use = counter_->use();
  uint64_t reserved = 0;
  if (pool_ != nullptr) {
    check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &reserved),
               "asking for the memory in use");
  }
  use.reserved_peak = reserved;
  return use;
}

void Device::reset_peak() {
  counter_->reset_peak();
  uint64_t zero = 0;  // stands for what is reserved now
  if (pool_ == nullptr) return;
  check_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &zero),
             "resetting the memory in use");
}

void Device::prepare_pinned() {
  for (Pinned& pinned : pinned_) {
    if (pinned.free != nullptr) continue;
    if (pinned.data == nullptr) {
      void* memory = nullptr;
      check_cuda(cudaMallocHost(&memory, kPinnedBytes), "allocating pinned memory");
      pinned.data = static_cast<std::byte*>(memory);
    }
    check_cuda(cudaEventCreateWithFlags(&pinned.free, cudaEventDisableTiming), "making an event");
  }
}

void Device::upload(std::byte* device, const std::byte* host, size_t bytes) {
  const Active active(traits_.index);
  prepare_pinned();
  for (size_t at = 0; at < bytes; at += kPinnedBytes) {
    const Pinned& pinned = pinned_[uploads_++ % 2];
    const size_t chunk = std::min(kPinnedBytes, bytes - at);
    check_cuda(cudaEventSynchronize(pinned.free), "waiting for an upload");
    std::memcpy(pinned.data, host + at, chunk);
    check_cuda(cudaMemcpyAsync(device + at, pinned.data, chunk, cudaMemcpyHostToDevice, stream()),
               "uploading");
    check_cuda(cudaEventRecord(pinned.free, stream()), "recording an event");
  }
}

void Device::download(std::byte* host, const std::byte* device, size_t bytes) {
  const Active active(traits_.index);
  ++waits_;
  prepare_pinned();
  const size_t chunks = (bytes + kPinnedBytes - 1) / kPinnedBytes;
  const auto chunk_bytes = [&](size_t i) {
    return std::min(kPinnedBytes, bytes - i * kPinnedBytes);
  };
  for (size_t i = 0; i <= chunks; ++i) {
    if (i < chunks) {
      const Pinned& pinned = pinned_[i % 2];
      check_cuda(cudaMemcpyAsync(pinned.data, device + i * kPinnedBytes, chunk_bytes(i),
                                 cudaMemcpyDeviceToHost, stream()),
                 "downloading");
      check_cuda(cudaEventRecord(pinned.free, stream()), "recording an event");
    }
    if (i > 0) {
      const Pinned& pinned = pinned_[(i - 1) % 2];
      check_cuda(cudaEventSynchronize(pinned.free), "waiting for a download");
      std::memcpy(host + (i - 1) * kPinnedBytes, pinned.data, chunk_bytes(i - 1));
    }
  }
}

void Device::give_back_unused() {
  const Active active(traits_.index);
  synchronize();
  if (flush_ != nullptr) check_cuda(cudaFree(std::exchange(flush_, nullptr)), "giving back memory");
  if (pool_ == nullptr) return;
  check_cuda(cudaMemPoolTrimTo(pool_, 0), "giving back memory");
}

void Device::synchronize() {
  const Active active(traits_.index);
  ++waits_;
  check_cuda(cudaStreamSynchronize(stream()), "waiting for the GPU");
}

double Device::time_us(const std::function<void()>& work) {
  const Active active(traits_.index);
  check_cuda(cudaEventRecord(begin_, stream()), "recording an event");
  work();
  check_cuda(cudaEventRecord(end_, stream()), "recording an event");
  check_cuda(cudaEventSynchronize(end_), "waiting for the GPU");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading an event");
  return milliseconds * 1e3;
}

double Device::time_cold_us(const std::function<void()>& work) {
  const Active active(traits_.index);
  if (flush_ == nullptr) {
    flush_bytes_ = static_cast<size_t>(std::max<int64_t>(4 * traits_.l2_bytes, int64_t{64} << 20));
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, flush_bytes_), "allocating memory to empty the L2 with");
    flush_ = static_cast<std::byte*>(memory);
  }
  check_cuda(cudaMemsetAsync(flush_, 0, flush_bytes_, stream()), "emptying the L2");
  return time_us(work);
}

}  // namespace octet::cuda
