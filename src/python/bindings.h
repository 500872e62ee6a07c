// octet._octet, the extension behind the Python package: handles, errors and the functions that
// fill the module.
//
// Nothing here trusts Python but for addresses: a number that is no address of what it should be
// crashes, as in ctypes. The package checks tensors before it passes their addresses on.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>

#include "octet/octet.h"

namespace octet::python {

namespace nb = nanobind;

// --- errors ---

// Also makes exceptions of the C++ interface those of Python.
void bind_errors(nb::module_& module);
// The exception of a status, with the sentence of octet_last_error() and `field`.
[[noreturn]] void raise(octet_status status);
[[noreturn]] void raise_error(const std::string& sentence);
[[noreturn]] void raise_invalid_request(const std::string& sentence, const std::string& field);

inline void check_status(octet_status status) {
  if (status != OCTET_OK) raise(status);
}

// --- handles ---

// The threads of a device do not follow a fork, so that in the child its handles are of no use,
// and cannot even be freed. Rises with each.
uint32_t fork_count();

template <class Handle, void (*free_handle)(Handle*)>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ == nullptr || forks_ != fork_count()) return;
    // Another thread may have the device to itself, and wait for Python to allocate memory.
    const nb::gil_scoped_release released;
    free_handle(handle_);
  }

  Handle** fill() { return &handle_; }
  Handle* get() const {
    if (forks_ != fork_count()) {
      raise_error(
          "this process was forked after the device was opened, and its threads stayed behind; "
          "open a device in the child, or start processes with \"spawn\"");
    }
    return handle_;
  }

 private:
  Handle* handle_ = nullptr;
  uint32_t forks_ = fork_count();
};

struct Device {
  Device(std::string name, int32_t threads, const std::string& tuning);
  ~Device();
  std::string description() const;

  std::string name;
  struct Taken;  // see calls.cpp
  std::unique_ptr<Taken> taken;
  Owned<octet_device, octet_device_free> handle;
};

// --- what the module holds ---

void bind_calls(nb::module_& module);
void bind_int8_mm(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_engine_records(nb::module_& module);
void bind_files(nb::module_& module);
void bind_checkpoint(nb::module_& module);

}  // namespace octet::python
