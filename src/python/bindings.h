// octet._octet, the extension behind the Python package: handles, errors and the functions that
// fill the module.
//
// Nothing here trusts Python, except for addresses: a wrong one crashes, as in ctypes. The package
// checks tensors before it passes their addresses on.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/fork.h"
#include "octet/octet.h"
#include "octet/sentence.h"
#include "python/gil.h"

namespace octet::python {

namespace nb = nanobind;

// --- errors ---

// Also turns exceptions of the C++ interface into those of Python.
void bind_errors(nb::module_& module);
// Raises the exception of a status, with the sentence of octet_last_error() and `field`.
[[noreturn]] void raise(octet_status status);
[[noreturn]] void raise_error(const std::string& sentence);
[[noreturn]] void raise_invalid_request(const std::string& sentence, const std::string& field);
[[noreturn]] void raise_wrong_type(const std::string& sentence, const std::string& field);

// Without what only the program has: captions come from `prompt`, or with `wrap_text`.
std::string said(const Sentence& sentence);

inline void check_status(octet_status status) {
  if (status != OCTET_OK) raise(status);
}

// --- handles ---

// The threads of a device do not survive a fork, so that its handles are useless in the child.
template <class Handle, void (*free_handle)(Handle*)>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ == nullptr || forks_ != fork_count()) return;
    // Another thread may be using the device, and wait for Python to allocate memory.
    const Unlocked unlocked;
    free_handle(handle_);
  }

  Handle** fill() { return &handle_; }
  Handle* get() const {
    if (forks_ != fork_count()) {
      raise_error(
          "this process was forked after the device was opened, and lacks the device's threads; "
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

// --- what the module contains ---

void bind_calls(nb::module_& module);
void bind_int8_mm(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_engine_records(nb::module_& module);
void bind_files(nb::module_& module);
void bind_checkpoint(nb::module_& module);

}  // namespace octet::python
