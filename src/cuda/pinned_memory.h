// Host memory that a GPU copies from, and to, at full speed.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace octet::cuda {

// Pages of its own, huge ones where the system has them, touched by all threads and then
// registered: 27 GB/s on a host with 16 cores, where cudaMallocHost() gives 1.6 (H200, driver 580,
// lab/memory/pinned.cu); copies are as fast.
class PinnedMemory {
 public:
  // Where pages cannot be pinned, ordinary ones, with one warning. OCTET_PINNED=0 pins none.
  Buffer allocate(size_t bytes, ThreadPool* pool);
  // Whether such a range was not pinned.
  bool is_pageable(const std::byte* at) const;

 private:
  // Buffers may outlive this object.
  struct Pageable {
    std::mutex mutex;
    std::map<const std::byte*, size_t> ranges;
    bool is_warned = false;
  };
  std::shared_ptr<Pageable> pageable_ = std::make_shared<Pageable>();
};

}  // namespace octet::cuda
