#include <string_view>

#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/error.h"
#include "formats/json_stream.h"

namespace octet::audit {
namespace {

// {"Layers": [{"Name": ..., "LayerType": ..., "Inputs": [...], "TacticName": ...}, ...],
// "Bindings": [...]}. Each layer becomes a range with the kernel of its tactic.
class EngineReader {
 public:
  explicit EngineReader(ByteStream& bytes) : path_(bytes.path()), json_(bytes), tables_(path_) {}

  Trace read() {
    check(json_.kind() == JsonStream::Kind::object,
          "{}: is a profile of TensorRT, which names layers and no kernels; give what trtexec "
          "--exportLayerInfo=FILE --profilingVerbosity=detailed writes",
          path_);
    for (json_.begin_object(); const auto key = json_.next_key();) {
      *key == "Layers" ? read_layers() : json_.skip();
    }
    json_.expect_end();
    check(tables_.has_kernels(),
          "{}: names an engine's layers without their tactics; build and inspect it with "
          "trtexec --profilingVerbosity=detailed",
          path_);
    return tables_.take("TensorRT engine", "", /*has_order=*/false);
  }

 private:
  struct Layer {
    std::string name, type, tactic;
    Signature inputs;
  };

  void read_layers() {
    if (json_.kind() != JsonStream::Kind::array) return json_.skip();
    for (json_.begin_array(); json_.next_element();) {
      json_.kind() == JsonStream::Kind::object ? read_layer() : json_.skip();
    }
  }

  void read_layer() {
    Layer layer;
    for (json_.begin_object(); const auto key = json_.next_key();) {
      if (*key == "Name") {
        layer.name = json_.text().substr(0, TraceTables::kMaxName);
      } else if (*key == "LayerType") {
        layer.type = json_.text().substr(0, 200);
      } else if (*key == "TacticName") {
        layer.tactic = json_.text().substr(0, TraceTables::kMaxName);
      } else if (*key == "Inputs") {
        read_inputs(layer);
      } else {
        json_.skip();
      }
    }
    if (layer.type.empty() && layer.tactic.empty()) return;
    add(layer);
  }

  void read_inputs(Layer& layer) {
    constexpr size_t kMostInputs = 16;
    if (json_.kind() != JsonStream::Kind::array) return json_.skip();
    for (json_.begin_array(); json_.next_element();) {
      if (json_.kind() != JsonStream::Kind::object || layer.inputs.size() >= kMostInputs) {
        json_.skip();
        continue;
      }
      Operand& input = layer.inputs.emplace_back();
      for (json_.begin_object(); const auto key = json_.next_key();) {
        if (*key == "Dimensions") {
          read_dims(input);
        } else if (*key == "Format/Datatype" || *key == "Datatype") {
          input.type = scalar_type_of(json_.text());  // "Row major Int8 format"
        } else {
          json_.skip();
        }
      }
    }
  }

  void read_dims(Operand& input) {
    constexpr size_t kMostDims = 8;
    if (json_.kind() != JsonStream::Kind::array) return json_.skip();
    for (json_.begin_array(); json_.next_element();) {
      const int64_t size = json_.integer().value_or(-1);
      if (size >= 0 && input.dims.size() < kMostDims) input.dims.push_back(size);
    }
  }

  void add(const Layer& layer) {
    ++layers_;
    Op op;
    op.start_us = layers_;
    op.us = 0.5;
    op.name = tables_.name(layer.name);
    op.is_range = true;
    op.thread = tables_.thread(1);
    if (!layer.inputs.empty()) op.signature = tables_.signature(layer.inputs);
    const uint32_t id = static_cast<uint32_t>(layers_);
    tables_.add_op(op, id);
    Kernel kernel;
    // A name that is made up is no name of a kernel: it stays unknown unless it is one.
    kernel.name = tables_.name(layer.tactic.empty() ? layer.type : layer.tactic);
    tables_.add_kernel(kernel, id, 0);
  }

  std::string path_;
  JsonStream json_;
  TraceTables tables_;
  double layers_ = 0;
};

}  // namespace

bool is_tensorrt_json(std::string_view head) {
  const std::string_view begin = head.substr(0, 4096);
  if (begin.find("\"traceEvents\"") != begin.npos) return false;
  return begin.find("\"Layers\"") != begin.npos || begin.find("\"timeMs\"") != begin.npos;
}

Trace read_tensorrt_json(ByteStream& bytes) { return EngineReader(bytes).read(); }

}  // namespace octet::audit
