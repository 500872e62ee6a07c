// The INT8 linear on addresses, called by octet.torch, octet.comfy and the package's functions.
// Arguments are positional, so that the overhead of a call is well under a microsecond.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <compare>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "octet/model_options.h"
#include "python/bindings.h"
#include "python/choices.h"

namespace octet::python {
namespace {

using nb::literals::operator""_a;

using Address = uintptr_t;
using Allocate = std::optional<nb::callable>;

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}

// Everything that decides how much memory a linear takes, except copied vectors.
struct LinearSize {
  int64_t m, n, k;
  bool of_codes;
  bool plain;    // else packed
  bool aligned;  // plain only: the GPU's kernels can read it in place, if its size allows that, too
  auto operator<=>(const LinearSize&) const = default;
};

}  // namespace

// The memory of linears that took more than octet_linear_memory(), for partial sums or copies. The
// next call passes as much from the start, which is cheaper than asking Python in between.
struct Device::Taken {
  static constexpr size_t kMostSizes = 4096;

  size_t of(const LinearSize& size, size_t least) {
    const std::lock_guard lock(mutex);
    const auto known = bytes.find(size);
    return known == bytes.end() ? least : std::max(known->second, least);
  }
  void remember(const LinearSize& size, size_t taken) {
    const std::lock_guard lock(mutex);
    if (bytes.size() >= kMostSizes) bytes.clear();
    size_t& most = bytes[size];
    most = std::max(most, taken);
  }

  std::mutex mutex;  // for a Python without a GIL
  std::map<LinearSize, size_t> bytes;
};

namespace {

// A call's stream and memory. Destroyed with the GIL held, after the call.
class Call {
 public:
  Call(Address stream, Address memory, size_t memory_bytes, const Allocate& allocate,
       bool stepwise = false)
      : function_(allocate) {
    call_.stepwise = stepwise ? 1 : 0;
    call_.stream = pointer<void>(stream);
    call_.memory = pointer<void>(memory);
    call_.memory_bytes = memory_bytes;
    if (allocate) {
      call_.allocate = &allocate_memory;
      call_.user = this;
    }
  }
  Call(const Call&) = delete;

  // The name of the kernel that ran.
  template <class Function>
  nb::str run(Function&& function) {
    octet_status status = OCTET_OK;
    {
      const Unlocked unlocked;
      status = function(&call_);
    }
    if (status != OCTET_OK) {
      if (error_) std::rethrow_exception(error_);
      raise(status);
    }
    const char* kernel = call_.kernel != nullptr ? call_.kernel : "";
    PyObject* name = PyUnicode_InternFromString(kernel);
    if (name == nullptr) nb::raise_python_error();
    return nb::steal<nb::str>(name);
  }

  size_t asked_for() const { return asked_for_; }

 private:
  static void* allocate_memory(void* user, size_t bytes) noexcept {
    return or_wait_for_exit([&] { return static_cast<Call*>(user)->allocated(bytes); });
  }
  void* allocated(size_t bytes) {
    const nb::gil_scoped_acquire acquired;
    try {
      nb::object memory = (*function_)(bytes);
      const Address address = nb::cast<Address>(memory.attr("data_ptr")());
      kept_.push_back(std::move(memory));
      asked_for_ += bytes;
      return pointer<void>(address);
    } catch (const abi::__forced_unwind&) {
      throw;
    } catch (...) {
      error_ = std::current_exception();
      return nullptr;
    }
  }

  octet_call call_ = octet_call_init();
  const Allocate& function_;
  std::vector<nb::object> kept_;
  size_t asked_for_ = 0;
  std::exception_ptr error_;
};

octet_matrix matrix(Address data, int64_t rows, int64_t columns, int64_t row_stride,
                    octet_dtype dtype) {
  return {pointer<void>(data), rows, columns, row_stride, dtype, 0};
}

// A weight that stays where it is, or a packed copy.
struct Weight {
  Weight(int64_t weight_n, int64_t weight_k, bool is_gate_up)
      : n(weight_n), k(weight_k), gate_up(is_gate_up) {}
  Weight(const Weight&) = delete;
  virtual ~Weight() = default;
  virtual const octet_plain_weight* plain() const { return nullptr; }
  virtual const octet_weight* packed() const { return nullptr; }
  // Columns of y: a gate and an up projection are combined.
  int64_t outputs() const { return gate_up ? n / 2 : n; }

  int64_t n, k;
  bool gate_up;
};

struct PlainWeight : Weight {
  PlainWeight(Address codes, int64_t weight_n, int64_t weight_k, int64_t row_stride, Address scales,
              int64_t scale_count, Address bias, octet_dtype bias_dtype, Address smooth,
              int64_t rotation_group, bool is_gate_up)
      : Weight(weight_n, weight_k, is_gate_up) {
    rows.codes = pointer<const int8_t>(codes);
    rows.n = n;
    rows.k = k;
    rows.row_stride = row_stride;
    rows.scales = pointer<const float>(scales);
    rows.scale_count = scale_count;
    rows.bias = pointer<const void>(bias);
    rows.bias_dtype = bias_dtype;
    rows.smooth = pointer<const float>(smooth);
    rows.rotation_group = rotation_group;
    rows.gate_up = gate_up ? 1 : 0;
  }
  const octet_plain_weight* plain() const override { return &rows; }

  octet_plain_weight rows = octet_plain_weight_init();
};

struct PackedWeight : Weight {
  PackedWeight(const Device& device, Address codes, int64_t weight_n, int64_t weight_k,
               Address scales, Address bias, Address smooth, int64_t rotation_group,
               bool is_gate_up)
      : Weight(weight_n, weight_k, is_gate_up) {
    octet_weight_rows rows = octet_weight_rows_init();
    rows.codes = pointer<const int8_t>(codes);
    rows.scales = pointer<const float>(scales);
    rows.bias = pointer<const float>(bias);
    rows.smooth = pointer<const float>(smooth);
    rows.n = n;
    rows.k = k;
    rows.rotation_group = rotation_group;
    rows.gate_up = gate_up ? 1 : 0;
    octet_device* on = device.handle.get();
    octet_status status = OCTET_OK;
    {
      const Unlocked unlocked;
      status = octet_weight_create(on, &rows, handle.fill());
    }
    check_status(status);
  }
  const octet_weight* packed() const override { return handle.get(); }

  Owned<octet_weight, octet_weight_free> handle;
};

// Without what a linear of this size was seen to take in addition.
size_t least_memory(const LinearSize& size) {
  return size.of_codes ? 0 : octet_linear_memory(size.m, size.k);
}

LinearSize size_of(const Weight& weight, int64_t m, bool of_codes) {
  const octet_plain_weight* plain = weight.plain();
  const bool aligned = plain != nullptr && plain->row_stride % 16 == 0 &&
                       reinterpret_cast<Address>(plain->codes) % 16 == 0;
  return {m, weight.n, weight.k, of_codes, plain != nullptr, aligned};
}

size_t linear_memory(const Device& device, const Weight& weight, int64_t m, bool of_codes) {
  const LinearSize size = size_of(weight, m, of_codes);
  return device.taken->of(size, least_memory(size));
}

// Runs a linear and remembers how much memory it asked for.
template <class Function>
nb::str run_linear(const Device& device, const LinearSize& size, size_t memory_bytes, Call& call,
                   Function&& function) {
  nb::str kernel = call.run(function);
  if (call.asked_for() > 0) device.taken->remember(size, memory_bytes + call.asked_for());
  return kernel;
}

void quantize_rows(const Device& device, Address stream, Address x, int64_t x_stride,
                   octet_dtype x_dtype, int64_t m, int64_t k, Address smooth,
                   int64_t rotation_group, Address codes, int64_t codes_stride, Address scales,
                   bool stepwise) {
  octet_device* on = device.handle.get();
  const octet_matrix from = matrix(x, m, k, x_stride, x_dtype);
  const octet_matrix to = matrix(codes, m, k, codes_stride, OCTET_I8);
  Call(stream, 0, 0, {}, stepwise).run([&](octet_call* call) {
    return octet_call_quantize_rows(on, call, &from, pointer<const float>(smooth), rotation_group,
                                    &to, pointer<float>(scales));
  });
}

nb::str linear(const Device& device, Address stream, Address memory, size_t memory_bytes,
               const Allocate& allocate, const Weight& weight, Address x, int64_t x_stride,
               octet_dtype x_dtype, int64_t m, Address y, int64_t y_stride, octet_dtype y_dtype,
               bool stepwise) {
  octet_device* on = device.handle.get();
  const octet_plain_weight* plain = weight.plain();
  const octet_weight* packed = weight.packed();
  const octet_matrix from = matrix(x, m, weight.k, x_stride, x_dtype);
  const octet_matrix to = matrix(y, m, weight.outputs(), y_stride, y_dtype);
  Call call(stream, memory, memory_bytes, allocate, stepwise);
  return run_linear(device, size_of(weight, m, false), memory_bytes, call, [&](octet_call* with) {
    return octet_call_linear(on, with, plain, packed, &from, &to);
  });
}

nb::str linear_int8(const Device& device, Address stream, Address memory, size_t memory_bytes,
                    const Allocate& allocate, const Weight& weight, Address codes,
                    int64_t codes_stride, Address scales, int64_t m, Address y, int64_t y_stride,
                    octet_dtype y_dtype) {
  octet_device* on = device.handle.get();
  const octet_plain_weight* plain = weight.plain();
  const octet_weight* packed = weight.packed();
  const octet_matrix from = matrix(codes, m, weight.k, codes_stride, OCTET_I8);
  const octet_matrix to = matrix(y, m, weight.outputs(), y_stride, y_dtype);
  Call call(stream, memory, memory_bytes, allocate);
  return run_linear(device, size_of(weight, m, true), memory_bytes, call, [&](octet_call* with) {
    return octet_call_linear_int8(on, with, plain, packed, &from, pointer<const float>(scales),
                                  &to);
  });
}

int32_t tuning_of(const std::string& word) {
  switch (value_of<Tuning>("tuning", word)) {
    case Tuning::off: return OCTET_TUNE_OFF;
    case Tuning::all: return OCTET_TUNE_ALL;
    default: return OCTET_TUNE_MISSING;
  }
}

}  // namespace

Device::Device(std::string device_name, int32_t threads, const std::string& tuning)
    : name(std::move(device_name)), taken(std::make_unique<Taken>()) {
  const int32_t tune = tuning_of(tuning);
  octet_status status = OCTET_OK;
  {
    const Unlocked unlocked;  // a GPU takes seconds to initialize
    status = octet_device_open(name.c_str(), nullptr, threads, tune, handle.fill());
  }
  check_status(status);
}

Device::~Device() = default;

std::string Device::description() const {
  octet_device* on = handle.get();
  std::string text(octet_device_describe(on, nullptr, 0), '\0');
  octet_device_describe(on, text.data(), text.size() + 1);
  return text;
}

void bind_calls(nb::module_& module) {
  nb::class_<Device>(module, "Device",
                     "A device by name: \"cpu\", \"ref\", \"cuda:0\". It serves all threads.")
      .def(nb::init<std::string, int32_t, std::string>(), "name"_a, "threads"_a = 0,
           "tuning"_a = "missing")
      .def_ro("name", &Device::name)
      .def_prop_ro("description", &Device::description)
      .def("synchronize",
           [](const Device& device) {
             octet_device* on = device.handle.get();
             octet_status status = OCTET_OK;
             {
               const Unlocked unlocked;
               status = octet_device_synchronize(on);
             }
             check_status(status);
           })
      .def("__repr__", [](const Device& device) { return "Device(\"" + device.name + "\")"; });

  nb::class_<Weight>(module, "Weight", "The weight of a linear.")
      .def_ro("n", &Weight::n)
      .def_ro("k", &Weight::k)
      .def_ro("gate_up", &Weight::gate_up);
  nb::class_<PlainWeight, Weight>(module, "PlainWeight", "Rows that are read where they are.")
      .def(nb::init<Address, int64_t, int64_t, int64_t, Address, int64_t, Address, octet_dtype,
                    Address, int64_t, bool>(),
           "codes"_a, "n"_a, "k"_a, "row_stride"_a, "scales"_a, "scale_count"_a, "bias"_a,
           "bias_dtype"_a, "smooth"_a, "rotation_group"_a, "gate_up"_a);
  nb::class_<PackedWeight, Weight>(module, "PackedWeight", "A packed copy on its device.")
      .def(nb::init<const Device&, Address, int64_t, int64_t, Address, Address, Address, int64_t,
                    bool>(),
           "device"_a, "codes"_a, "n"_a, "k"_a, "scales"_a, "bias"_a, "smooth"_a,
           "rotation_group"_a, "gate_up"_a);

  module.def("linear_memory", &linear_memory, "device"_a, "weight"_a, "m"_a, "of_codes"_a = false,
             "Bytes for `memory`: what a linear of m rows is known to take.");
  module.def("quantize_rows", &quantize_rows, "device"_a, "stream"_a, "x"_a, "x_stride"_a,
             "x_dtype"_a, "m"_a, "k"_a, "smooth"_a, "rotation_group"_a, "codes"_a, "codes_stride"_a,
             "scales"_a, "stepwise"_a = false);
  module.def("linear", &linear, "device"_a, "stream"_a, "memory"_a, "memory_bytes"_a, "allocate"_a,
             "weight"_a, "x"_a, "x_stride"_a, "x_dtype"_a, "m"_a, "y"_a, "y_stride"_a, "y_dtype"_a,
             "stepwise"_a = false);
  module.def("linear_int8", &linear_int8, "device"_a, "stream"_a, "memory"_a, "memory_bytes"_a,
             "allocate"_a, "weight"_a, "codes"_a, "codes_stride"_a, "scales"_a, "m"_a, "y"_a,
             "y_stride"_a, "y_dtype"_a);
}

}  // namespace octet::python
