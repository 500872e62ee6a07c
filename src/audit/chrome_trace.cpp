#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "formats/json_stream.h"

namespace octet::audit {
namespace {

// Times beyond are damage: eleven days, and a thousand times the age of clocks.
constexpr double kLongestUs = 1e12, kLatestUs = 1e18;
constexpr size_t kMaxOperands = 32, kMaxDims = 16;
constexpr size_t kMaxDevices = 64;
// Calls of modules, among the Python functions that are recorded with stacks.
constexpr std::string_view kModulePrefix = "nn.Module: ";

// What XLA calls devices and the streams of one, on whose lanes its kernels stand.
constexpr std::string_view kXlaDevice = "/device:GPU", kXlaStream = "Stream";
constexpr size_t kMaxLanes = 4096;
// ONNX Runtime times each node, and what is around it.
constexpr std::string_view kOnnxTime = "_kernel_time";

enum class Category : uint8_t {
  not_told,
  op,
  range,
  python,
  kernel,
  transfer,
  runtime,
  node,  // of ONNX Runtime
  ignored
};

// As the versions of PyTorch since 1.8 call them.
Category category_of(std::string_view text) {
  constexpr std::pair<std::string_view, Category> known[] = {
      {"cpu_op", Category::op},
      {"kernel", Category::kernel},
      {"cuda_runtime", Category::runtime},
      {"cuda_driver", Category::runtime},
      {"user_annotation", Category::range},
      {"python_function", Category::python},
      {"gpu_memcpy", Category::transfer},
      {"gpu_memset", Category::transfer},
      {"Operator", Category::op},
      {"Kernel", Category::kernel},
      {"Runtime", Category::runtime},
      {"Memcpy", Category::transfer},
      {"Memset", Category::transfer},
      {"hip_runtime", Category::runtime},
      {"xpu_runtime", Category::runtime},
      {"privateuse1_runtime", Category::runtime},
      {"Node", Category::node},
  };
  for (const auto& [name, category] : known) {
    if (text == name) return category;
  }
  return Category::ignored;
}

uint64_t hash_of(std::string_view text, uint64_t seed) {
  return hash_bytes(std::as_bytes(std::span(text)), seed);
}

// Ids are counters from 1; one that does not fit is as good as none.
uint32_t id_of(std::optional<int64_t> value) {
  return value && *value > 0 && *value < int64_t{kNone} ? static_cast<uint32_t>(*value) : 0;
}

class ChromeReader {
 public:
  explicit ChromeReader(ByteStream& bytes) : path_(bytes.path()), json_(bytes), tables_(path_) {}

  Trace read() {
    bool has_events = json_.kind() == JsonStream::Kind::array;
    if (has_events) {
      each_object([&] { read_event(); });
    } else {
      for (json_.begin_object(); const auto key = json_.next_key();) {
        if (*key == "traceEvents") {
          has_events = has_events || json_.kind() == JsonStream::Kind::array;
          each_object([&] { read_event(); });
        } else if (*key == "deviceProperties") {
          each_object([&] { read_device(); });
        } else {
          json_.skip();
        }
      }
    }
    json_.expect_end();
    check(has_events,
          "{}: is JSON without traceEvents, expected a trace of PyTorch's profiler or a report of "
          "Octet",
          path_);
    check(tables_.has_ops() || tables_.has_kernels(),
          "{}: is a trace without ops of PyTorch and without kernels, so there is nothing to tell",
          path_);
    const char* format = is_of_onnx_  ? "ONNX Runtime profile"
                         : is_of_xla_ ? "XLA profile"
                                      : "PyTorch profiler trace";
    return tables_.take(format, device(), /*has_order=*/true);
  }

 private:
  struct Event {
    char phase = 0;
    Category category = Category::not_told;
    double start_us = std::nan(""), us = 0;
    uint64_t process = 0, thread = 0;  // hashes
    uint32_t id = 0, correlation = 0;
    uint64_t threads = 0;
    int64_t device = -1;
    bool has_name = false;
  };

  // Calls `read` for each element of an array, which it takes; all else is passed over.
  template <class Read>
  void each_element(const Read& read) {
    if (json_.kind() != JsonStream::Kind::array) return json_.skip();
    for (json_.begin_array(); json_.next_element();) read();
  }

  template <class Read>
  void each_object(const Read& read) {
    each_element([&] { json_.kind() == JsonStream::Kind::object ? read() : json_.skip(); });
  }

  void read_event() {
    Event event;
    signature_.clear();
    label_.clear();
    grid_ = block_ = 0;
    for (json_.begin_object(); const auto key = json_.next_key();) {
      read_field(*key, event);
      // Flows, stacks and marks are most of many files.
      if (is_of_no_use(event)) {
        json_.leave_object();
        return;
      }
    }
    if (event.phase == 'M') return note_lane(event);
    if (event.phase != 'X' || !event.has_name || !(std::abs(event.start_us) <= kLatestUs)) return;
    if (event.category == Category::not_told && is_on_stream(event)) {
      event.category = Category::kernel;
    }
    event.us = event.us >= 0 ? std::min(event.us, kLongestUs) : 0;
    keep(event);
  }

  bool is_of_no_use(const Event& event) const {
    if (event.phase != 0 && event.phase != 'X' && event.phase != 'M') return true;
    if (event.category == Category::ignored) return true;
    return event.category == Category::python && event.has_name &&
           !name_.starts_with(kModulePrefix);
  }

  // {"ph": "M", "pid": 1, "tid": 13, "name": "thread_name", "args": {"name": "Stream #13"}}
  void note_lane(const Event& event) {
    if (xla_devices_.size() + streams_.size() >= kMaxLanes) return;
    if (name_ == "process_name" && label_.starts_with(kXlaDevice)) {
      xla_devices_.insert(event.process);
    } else if (name_ == "thread_name" && label_.starts_with(kXlaStream)) {
      streams_.insert(lane_of(event));
    }
  }

  static uint64_t lane_of(const Event& event) { return event.process * kHashFactor + event.thread; }

  bool is_on_stream(const Event& event) const {
    return xla_devices_.contains(event.process) && streams_.contains(lane_of(event));
  }

  void read_field(std::string_view key, Event& event) {
    if (key == "ph") {
      const std::string_view phase = json_.text();
      event.phase = phase.size() == 1 ? phase[0] : '?';
    } else if (key == "cat") {
      event.category = category_of(json_.text());
    } else if (key == "name") {
      // Only ends of names are long, and of calls of the runtime nothing needs them.
      name_.assign(json_.text().substr(0, TraceTables::kMaxName + 4));
      event.has_name = true;
    } else if (key == "ts") {
      event.start_us = json_.number();
    } else if (key == "dur") {
      event.us = json_.number();
    } else if (key == "pid") {
      event.process = hash_of(json_.text(), 1);
    } else if (key == "tid") {
      event.thread = hash_of(json_.text(), 2);
    } else if (key == "args" && json_.kind() == JsonStream::Kind::object) {
      for (json_.begin_object(); const auto argument = json_.next_key();) {
        read_argument(*argument, event);
      }
      const auto threads = checked_mul(grid_, block_);
      event.threads = threads.value_or(0);
    } else {
      json_.skip();
    }
  }

  void read_argument(std::string_view key, Event& event) {
    if (key == "External id" || key == "External Id" || key == "external id") {
      event.id = id_of(json_.integer());
    } else if (key == "correlation") {
      event.correlation = id_of(json_.integer());
    } else if (key == "Input Dims" || key == "Input dims") {
      read_dims();
    } else if (key == "Input type" || key == "Input Type") {
      read_types();
    } else if (key == "grid") {
      grid_ = read_product();
    } else if (key == "block") {
      block_ = read_product();
    } else if (key == "device") {
      event.device = json_.integer().value_or(-1);
    } else if (key == "name" || key == "op_name") {
      label_.assign(json_.text().substr(0, TraceTables::kMaxName));
    } else if (key == "input_type_shape") {
      read_typed_dims();
    } else {
      json_.skip();
    }
  }

  // [x, y, z]
  uint64_t read_product() {
    uint64_t product = json_.kind() == JsonStream::Kind::array ? 1 : 0;
    each_element([&] {
      const int64_t factor = json_.integer().value_or(0);
      product = factor < 0 ? 0 : checked_mul(product, static_cast<uint64_t>(factor)).value_or(0);
    });
    return product;
  }

  Operand* operand(size_t index) {
    if (index >= kMaxOperands) return nullptr;
    if (signature_.size() <= index) signature_.resize(index + 1);
    return &signature_[index];
  }

  // [[4096, 4608], [], ...]; lists of tensors are a level deeper, and have no dims here.
  void read_dims() {
    size_t index = 0;
    each_element([&] {
      Operand* into = operand(index++);
      if (into == nullptr || json_.kind() != JsonStream::Kind::array) return json_.skip();
      into->dims.clear();
      bool is_tensor = true;
      each_element([&] {
        is_tensor =
            is_tensor && json_.kind() == JsonStream::Kind::number && into->dims.size() < kMaxDims;
        if (!is_tensor) return json_.skip();
        into->dims.push_back(json_.integer().value_or(-1));
        is_tensor = into->dims.back() >= 0;
      });
      if (!is_tensor) into->dims.clear();
    });
  }

  // ["c10::BFloat16", "", ...]
  void read_types() {
    size_t index = 0;
    each_element([&] {
      Operand* into = operand(index++);
      if (into == nullptr) return json_.skip();
      into->type = scalar_type_of(json_.text());
    });
  }

  // [{"float": [1, 128, 768]}, {"int8": [768, 768]}]
  void read_typed_dims() {
    size_t index = 0;
    each_object([&] {
      Operand* into = operand(index++);
      for (json_.begin_object(); const auto type = json_.next_key();) {
        if (into != nullptr) into->type = scalar_type_of(*type);
        each_element([&] {
          const int64_t size = json_.integer().value_or(-1);
          if (into != nullptr && size >= 0 && into->dims.size() < kMaxDims) {
            into->dims.push_back(size);
          }
        });
      }
    });
  }

  void keep(const Event& event) {
    const uint64_t place = lane_of(event);
    switch (event.category) {
      case Category::node:
        if (!name_.ends_with(kOnnxTime) || label_.empty()) return;
        is_of_onnx_ = true;
        name_ = "onnx::" + label_;
        [[fallthrough]];
      case Category::op:
      case Category::range:
      case Category::python: {
        Op op;
        op.start_us = event.start_us;
        op.us = static_cast<float>(event.us);
        op.name = tables_.name(name_);
        if (!signature_.empty()) op.signature = tables_.signature(signature_);
        op.thread = tables_.thread(place);
        op.is_range = event.category == Category::range || event.category == Category::python;
        tables_.add_op(op, event.id);
        return;
      }
      case Category::kernel:
      case Category::transfer: {
        Kernel kernel;
        kernel.start_us = event.start_us;
        kernel.us = event.us;
        kernel.name = tables_.name(name_);
        kernel.threads = event.threads;
        kernel.is_transfer = event.category == Category::transfer || name_.starts_with("Memcpy") ||
                             name_.starts_with("Memset");
        is_of_xla_ = is_of_xla_ || is_on_stream(event);
        if (first_device_ < 0 && !kernel.is_transfer) first_device_ = event.device;
        tables_.add_kernel(kernel, event.id, event.correlation);
        return;
      }
      case Category::runtime:
        if (event.correlation == 0) return;  // before its thread takes memory
        tables_.add_launch(event.start_us, tables_.thread(place), event.id, event.correlation);
        return;
      default: return;
    }
  }

  // {"id": 0, "name": "NVIDIA H200", ...}
  void read_device() {
    int64_t id = -1;
    std::string name;
    for (json_.begin_object(); const auto key = json_.next_key();) {
      if (*key == "id") {
        id = json_.integer().value_or(-1);
      } else if (*key == "name") {
        name = json_.text().substr(0, 200);
      } else {
        json_.skip();
      }
    }
    if (devices_.size() < kMaxDevices) devices_.emplace(id, name);
  }

  std::string device() const {
    if (!tables_.has_kernels() || devices_.empty()) return {};
    const auto found = devices_.find(first_device_);
    return found == devices_.end() ? devices_.begin()->second : found->second;
  }

  std::string path_;
  JsonStream json_;
  TraceTables tables_;
  std::string name_, label_;  // of the event, and one among its arguments
  Signature signature_;       // of the event
  std::set<uint64_t> xla_devices_, streams_;
  bool is_of_onnx_ = false, is_of_xla_ = false;
  uint64_t grid_ = 0, block_ = 0;
  std::map<int64_t, std::string> devices_;
  int64_t first_device_ = -1;
};

}  // namespace

Trace read_chrome_trace(ByteStream& bytes) { return ChromeReader(bytes).read(); }

}  // namespace octet::audit
