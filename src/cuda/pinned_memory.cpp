#include "cuda/pinned_memory.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/env.h"
#include "base/log.h"
#include "base/out_of_memory.h"

namespace octet::cuda {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;  // or larger; touching each of this size touches all

std::byte* map_pages(size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    throw OutOfMemory(
        sentence("out of memory: {:.1f} MB of host memory for weights were refused; "
                 "close other programs, or use `keep` to stream weights",
                 static_cast<double>(bytes) * 1e-6));
  }
  // Only advice: where there are none, ordinary pages do.
  if (bytes >= kHugePage) ::madvise(at, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(at);
}

// By all threads: the system clears pages as they are touched for the first time.
void touch(std::byte* at, size_t bytes, ThreadPool* pool) {
  const auto touch_piece = [&](int64_t index, int) {
    const size_t first = static_cast<size_t>(index) * kHugePage;
    for (size_t i = first; i < std::min(first + kHugePage, bytes); i += kPage) at[i] = {};
  };
  const auto pieces = static_cast<int64_t>((bytes + kHugePage - 1) / kHugePage);
  if (pool != nullptr && pieces > 1) return pool->run(pieces, touch_piece);
  for (int64_t i = 0; i < pieces; ++i) touch_piece(i, 0);
}

}  // namespace

Buffer PinnedMemory::allocate(size_t bytes, ThreadPool* pool) {
  const size_t page = bytes >= kHugePage ? kHugePage : kPage;
  const auto rounded = static_cast<size_t>(
      round_up(static_cast<int64_t>(std::max<size_t>(bytes, 1)), static_cast<int64_t>(page)));
  std::byte* at = map_pages(rounded);
  try {
    touch(at, rounded, pool);
  } catch (...) {
    ::munmap(at, rounded);
    throw;
  }
  cudaError_t status = cudaErrorNotSupported;
  if (env::pinned()) status = cudaHostRegister(at, rounded, cudaHostRegisterPortable);
  if (status == cudaSuccess) {
    return {at, bytes, [rounded](std::byte* memory) {
              cudaHostUnregister(memory);
              ::munmap(memory, rounded);
            }};
  }
  cudaGetLastError();  // clears it: the next call must not see it
  const std::lock_guard lock(pageable_->mutex);
  pageable_->ranges[at] = rounded;
  if (!std::exchange(pageable_->is_warned, true)) {
    log::warning(
        "cuda: host memory is not pinned ({}): weights come to the device through a few "
        "pinned pieces, which takes the host's threads and may be slower",
        env::pinned() ? cudaGetErrorString(status) : "OCTET_PINNED is 0");
  }
  return {at, bytes, [rounded, pageable = pageable_](std::byte* memory) {
            {
              const std::lock_guard released(pageable->mutex);
              pageable->ranges.erase(memory);
            }
            ::munmap(memory, rounded);
          }};
}

bool PinnedMemory::is_pageable(const std::byte* at) const {
  const std::lock_guard lock(pageable_->mutex);
  const auto behind = pageable_->ranges.upper_bound(at);
  if (behind == pageable_->ranges.begin()) return false;
  const auto& [begin, bytes] = *std::prev(behind);
  return at < begin + bytes;
}

}  // namespace octet::cuda
