// What backends share whose memory is the host's own and whose work is done when the call returns.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/gemm_tuning.h"
#include "backend/memory_counter.h"
#include "base/checked.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"

namespace octet {

class HostBackend : public Backend, protected GemmTuning {
 public:
  using Backend::Backend;
  GemmTuning& tuning() override { return *this; }
  MemoryUse memory() const override { return counter_->use(); }
  void reset_peak() override { counter_->reset_peak(); }
  size_t mark() override {
    marks_.push_back(clock_.microseconds());
    return marks_.size() - 1;
  }
  size_t mark_copies() override { return mark(); }
  double microseconds_between(size_t begin, size_t end) override {
    return marks_.at(end) - marks_.at(begin);
  }
  void forget_marks() override { marks_.clear(); }
  void copy_to_device(std::byte* device, const std::byte* host, size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void copy_to_host(std::byte* host, const std::byte* device, size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void synchronize() override {}
  Buffer allocate_pinned(size_t bytes) override { return allocate_host(bytes); }
  Transfer prefetch(std::byte* device, const std::byte* pinned, size_t bytes) override {
    copy(device, pinned, bytes);
    return {};
  }
  void wait(const Transfer&) override {}

 protected:
  Buffer do_allocate(size_t bytes) override { return counter_->count(allocate_host(bytes)); }
  double time_us(const std::function<void()>& work) override {
    const Stopwatch watch;
    work();
    return watch.microseconds();
  }

  // Straight to where the bytes stay.
  Buffer do_upload(size_t bytes, const Fill& fill, ThreadPool* pool, size_t granule) override {
    Buffer buffer = allocate(bytes);
    const size_t piece = upload_piece(granule);
    const auto fill_piece = [&](int64_t index, int) {
      const size_t first = static_cast<size_t>(index) * piece;
      fill(buffer.data() + first, first, std::min(piece, bytes - first));
    };
    const auto pieces = static_cast<int64_t>((bytes + piece - 1) / piece);
    if (pool != nullptr) {
      pool->run(pieces, fill_piece);
    } else {
      for (int64_t i = 0; i < pieces; ++i) fill_piece(i, 0);
    }
    return buffer;
  }

  // What do_begin_pack() does about scales, and do_pack_rows().
  void begin_scales(QWeight& weight) {
    weight.col_scale = allocate(scale_bytes(weight.n));
    if (weight.n > 0) std::memset(weight.col_scale.data(), 0, weight.col_scale.bytes());
  }
  static void pack_scales(QWeight& weight, int64_t first, const ConstTensorView& scales,
                          const ConstTensorView& factors) {
    auto* to = reinterpret_cast<float*>(weight.col_scale.data());
    for (int64_t i = 0; i < scales.shape[0]; ++i) {
      const float scale = scales.as<float>()[i];
      to[weight.channel_of(first + i)] =
          factors.data == nullptr ? scale : scale * factors.as<float>()[i];
    }
  }

  std::shared_ptr<MemoryCounter> counter_ = std::make_shared<MemoryCounter>();

 private:
  Stopwatch clock_;
  std::vector<double> marks_;
};

// False for a device with memory of its own: there the host only holds what is on its way.
inline bool keeps_data_on_host(const Backend& backend) {
  return dynamic_cast<const HostBackend*>(&backend) != nullptr;
}

}  // namespace octet
