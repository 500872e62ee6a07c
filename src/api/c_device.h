// What the operations of octet/operations.h share: devices, weights, and the caller's matrices.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "api/c_api.h"
#include "backend/backend.h"
#include "backend/kernel_watch.h"
#include "base/fork.h"

namespace octet::c_api {

// A backend is used by one thread at a time. Weights keep their backend alive, so that handles may
// be freed in any order.
struct SharedDevice {
  std::mutex mutex;
  std::atomic<std::thread::id> owner;  // of the mutex: its callbacks may come back here
  std::unique_ptr<Backend> backend;
  std::string description;
  std::optional<KernelWatch> watch;
  uint32_t forks = fork_count();

  bool is_of_this_process() const { return forks == fork_count(); }
  bool is_held_here() const { return owner.load() == std::this_thread::get_id(); }
};

class HeldDevice {
 public:
  explicit HeldDevice(SharedDevice& device) : device_(device), lock_(device.mutex) {
    device_.owner = std::this_thread::get_id();
  }
  ~HeldDevice() { device_.owner = std::thread::id(); }
  HeldDevice(const HeldDevice&) = delete;
  HeldDevice& operator=(const HeldDevice&) = delete;

 private:
  SharedDevice& device_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace octet::c_api

struct octet_device {
  std::shared_ptr<octet::c_api::SharedDevice> shared;
};

struct octet_weight {
  std::shared_ptr<octet::c_api::SharedDevice> device;
  octet::QWeight packed;
};

namespace octet::c_api {

// Throws for NULL, and for a device without threads.
inline std::shared_ptr<SharedDevice> shared_of(const octet_device* device) {
  check_given(device, "device");
  check(device->shared->is_of_this_process(),
        "this process was forked after the device was opened, and lacks the device's threads; open "
        "a device in the child");
  return device->shared;
}

// Calls `work` with exclusive use of a device's backend.
template <class Work>
octet_status on_device(octet_device* device, Work&& work) noexcept {
  return guarded([&] {
    const std::shared_ptr<SharedDevice> shared = shared_of(device);
    check_value(
        !shared->is_held_here(), "device",
        "`device` was called by the `allocate` of one of its own calls, for which it waits");
    const HeldDevice held(*shared);
    work(*shared->backend);
  });
}

// Bounds the elements along an axis, and from one row to the next, so that the bytes of any matrix
// can be counted in 64 bits.
inline constexpr int64_t kLargestExtent = int64_t{1} << 30;

void check_extent(int64_t extent, const char* name, const char* field);
DType dtype_of(octet_dtype dtype, const char* field);
TensorView view_of(const octet_matrix* matrix, const char* field);
TensorView vector_of(const float* values, int64_t count, const char* field);
// Numbers of a weight, in the host's memory, or NULL.
void check_finite(const float* values, int64_t count, const char* field);
// Of a result, before anything is read.
inline void check_rows(const TensorView& y, int64_t m) {
  check_value(y.shape[0] == m, "y", "`y` has {} rows, but `x` has {}", y.shape[0], m);
}
// Hosts have no streams.
void check_no_stream(const Backend& backend, const void* stream);
ActivationTransform transform_of(const float* smooth, int64_t rotation_group, int64_t k);
// Throws InvalidRequest for a weight of another device.
const QWeight& weight_for(const octet_device& device, const octet_weight* weight);

}  // namespace octet::c_api
