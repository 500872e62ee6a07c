#include "cuda/attention/cudnn_attention.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "cuda/attention/flash.h"

namespace octet::cuda {
namespace {

// The few functions and numbers of cudnn_graph.h that are needed, so that nobody has to install it.
// Attention as one operation came with cuDNN 9.13.
using Status = int;
constexpr Status kSuccess = 0;
constexpr size_t kOldest = 91300;

enum DescriptorType { kEngineConfig = 3, kHeuristics = 4, kExecutionPlan = 5, kGraph = 15 };
enum { kVariantPack = 16, kTensor = 17, kAttention = 41 };
enum ValueType { kHandle = 0, kDataType = 1, kBoolean = 2, kInt64 = 3, kPointer = 6 };
enum { kHeuristicMode = 8, kDescriptor = 15 };
enum Attribute {
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kPlanHandle = 400,
  kPlanEngineConfig = 401,
  kPlanWorkspaceSize = 402,
  kGraphHandle = 800,
  kGraphOps = 801,
  kTensorAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kAttentionQ = 2800,  // then k, v and out
  kAttentionScale = 2805,
};
constexpr int kFloat = 0, kBf16 = 9;  // data types
constexpr int kModeA = 3;             // of heuristics
constexpr int64_t kScaleId = 5;       // of tensors; q, k, v and out are 1 to 4

struct Library {
  size_t (*cudnnGetVersion)() = nullptr;
  const char* (*cudnnGetErrorString)(Status) = nullptr;
  Status (*cudnnCreate)(void**) = nullptr;
  Status (*cudnnDestroy)(void*) = nullptr;
  Status (*cudnnSetStream)(void*, void*) = nullptr;
  Status (*cudnnBackendCreateDescriptor)(int, void**) = nullptr;
  Status (*cudnnBackendDestroyDescriptor)(void*) = nullptr;
  Status (*cudnnBackendFinalize)(void*) = nullptr;
  Status (*cudnnBackendSetAttribute)(void*, int, int, int64_t, const void*) = nullptr;
  Status (*cudnnBackendGetAttribute)(void*, int, int, int64_t, int64_t*, void*) = nullptr;
  Status (*cudnnBackendExecute)(void*, void*, void*) = nullptr;
  std::string problem;

  Library() {
    constexpr const char* kName = "libcudnn.so.9";
    constexpr const char* kRemedy =
        "install cuDNN 9.13 or newer, or add its folder to LD_LIBRARY_PATH";
    void* library = nullptr;
    // The second opens the first when it is called, and ends the process if that is missing.
    for (const char* name : {"libcudnn_graph.so.9", kName}) {
      library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) continue;
      const char* why = ::dlerror();
      problem =
          fmt::format("{} cannot be opened ({}); {}", name, why == nullptr ? "" : why, kRemedy);
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) problem = fmt::format("{} has no {}; {}", kName, name, kRemedy);
    };
#define OCTET_CUDNN(name) find(name, #name)
    OCTET_CUDNN(cudnnGetVersion);
    OCTET_CUDNN(cudnnGetErrorString);
    OCTET_CUDNN(cudnnCreate);
    OCTET_CUDNN(cudnnDestroy);
    OCTET_CUDNN(cudnnSetStream);
    OCTET_CUDNN(cudnnBackendCreateDescriptor);
    OCTET_CUDNN(cudnnBackendDestroyDescriptor);
    OCTET_CUDNN(cudnnBackendFinalize);
    OCTET_CUDNN(cudnnBackendSetAttribute);
    OCTET_CUDNN(cudnnBackendGetAttribute);
    OCTET_CUDNN(cudnnBackendExecute);
#undef OCTET_CUDNN
    if (problem.empty() && cudnnGetVersion() < kOldest) {
      problem = fmt::format("cuDNN is {}.{}; {}", cudnnGetVersion() / 10000,
                            cudnnGetVersion() / 100 % 100, kRemedy);
    }
  }
};

const Library& library() {
  static const auto& opened = never_destroyed<Library>();
  return opened;
}

void check_cudnn(Status status, std::string_view what) {
  check(status == kSuccess, "attention: cuDNN: {}: {}", what,
        library().cudnnGetErrorString(status));
}

// One of cuDNN's descriptors, owned.
class Descriptor {
 public:
  explicit Descriptor(int type) {
    check_cudnn(library().cudnnBackendCreateDescriptor(type, &raw_), "making a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (raw_ != nullptr) library().cudnnBackendDestroyDescriptor(raw_);
  }

  void set(int attribute, int type, int64_t count, const void* values) {
    check_cudnn(library().cudnnBackendSetAttribute(raw_, attribute, type, count, values),
                fmt::format("attribute {}", attribute));
  }
  void set(int attribute, const Descriptor& value) { set(attribute, kDescriptor, 1, &value.raw_); }
  void set_numbers(int attribute, const std::vector<int64_t>& numbers) {
    set(attribute, kInt64, static_cast<int64_t>(numbers.size()), numbers.data());
  }
  Status try_to_finalize() { return library().cudnnBackendFinalize(raw_); }
  void finalize(std::string_view what) { check_cudnn(try_to_finalize(), what); }
  void* raw() const { return raw_; }
  void* release() { return std::exchange(raw_, nullptr); }

 private:
  void* raw_ = nullptr;
};

// [1, heads, rows, head_dim] of a matrix whose rows contain the heads side by side.
Descriptor tensor_of(int64_t id, const ConstTensorView& matrix, int64_t heads) {
  const int64_t rows = matrix.shape[0], head_dim = matrix.shape[1] / heads;
  const int64_t stride = rows > 1 ? matrix.row_stride() : matrix.shape[1];
  Descriptor tensor(kTensor);
  const int type = kBf16;
  tensor.set(kTensorDataType, kDataType, 1, &type);
  tensor.set_numbers(kTensorDimensions, {1, heads, rows, head_dim});
  tensor.set_numbers(kTensorStrides, {rows * stride, head_dim, stride, 1});
  tensor.set_numbers(kTensorAlignment, {16});
  tensor.set_numbers(kTensorId, {id});
  tensor.finalize("a tensor");
  return tensor;
}

Descriptor scale_tensor() {
  Descriptor tensor(kTensor);
  const int type = kFloat;
  const bool by_value = true;
  tensor.set(kTensorDataType, kDataType, 1, &type);
  tensor.set_numbers(kTensorDimensions, {1, 1, 1, 1});
  tensor.set_numbers(kTensorStrides, {1, 1, 1, 1});
  tensor.set_numbers(kTensorAlignment, {16});
  tensor.set_numbers(kTensorId, {kScaleId});
  tensor.set(kTensorIsByValue, kBoolean, 1, &by_value);
  tensor.finalize("the scale");
  return tensor;
}

// Why no plan is even tried.
std::string unsuitable(const AttentionArgs& args) {
  if (!library().problem.empty()) return library().problem;
  if (args.q.dtype != DType::bf16) return "it takes BF16";
  if (args.causal) return "it takes no mask";
  for (const ConstTensorView& view : {args.q, args.k, args.v, ConstTensorView(args.out)}) {
    if (!has_aligned_rows(view)) return "it needs rows at multiples of 16 bytes";
  }
  return "";
}

}  // namespace

// cuDNN's choice for a problem: the first plan it proposes that it can also run.
class CudnnAttention::Plan {
 public:
  Plan(void* handle, const AttentionArgs& args) {
    const Descriptor tensors[] = {
        tensor_of(1, args.q, args.heads), tensor_of(2, args.k, args.kv_heads),
        tensor_of(3, args.v, args.kv_heads), tensor_of(4, args.out, args.heads)};
    const Descriptor scale = scale_tensor();
    Descriptor operation(kAttention);
    for (int i = 0; i < 4; ++i) operation.set(kAttentionQ + i, tensors[i]);
    operation.set(kAttentionScale, scale);
    operation.finalize("the operation");
    Descriptor graph(kGraph);
    graph.set(kGraphOps, operation);
    graph.set(kGraphHandle, kHandle, 1, &handle);
    graph.finalize("the graph");
    Descriptor heuristics(kHeuristics);
    heuristics.set(kHeuristicsGraph, graph);
    const int mode = kModeA;
    heuristics.set(kHeuristicsMode, kHeuristicMode, 1, &mode);
    heuristics.finalize("what suits it");

    constexpr int64_t kMost = 8;
    std::vector<Descriptor> configs;
    std::vector<void*> raw;
    for (int64_t i = 0; i < kMost; ++i) raw.push_back(configs.emplace_back(kEngineConfig).raw());
    int64_t found = 0;
    check_cudnn(library().cudnnBackendGetAttribute(heuristics.raw(), kHeuristicsResults,
                                                   kDescriptor, kMost, &found, raw.data()),
                "what suits it");
    Status status = kSuccess;
    for (int64_t i = 0; i < std::min(found, kMost); ++i) {
      Descriptor plan(kExecutionPlan);
      plan.set(kPlanHandle, kHandle, 1, &handle);
      plan.set(kPlanEngineConfig, configs[static_cast<size_t>(i)]);
      status = plan.try_to_finalize();
      if (status != kSuccess) continue;
      int64_t count = 0;
      check_cudnn(library().cudnnBackendGetAttribute(plan.raw(), kPlanWorkspaceSize, kInt64, 1,
                                                     &count, &workspace_bytes_),
                  "the size of its workspace");
      plan_ = plan.release();
      return;
    }
    fail("attention: cuDNN has no plan for it{}{}", status == kSuccess ? "" : ": ",
         status == kSuccess ? "" : library().cudnnGetErrorString(status));
  }
  explicit Plan(std::string refusal) : refusal_(std::move(refusal)) {}
  ~Plan() {
    if (plan_ != nullptr) library().cudnnBackendDestroyDescriptor(plan_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const std::string& refusal() const { return refusal_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

  void run(void* handle, const AttentionArgs& args, void* workspace) {
    auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(args.head_dim())));
    const std::array<const void*, 5> pointers = {args.q.data, args.k.data, args.v.data,
                                                 args.out.data, &scale};
    Descriptor pack(kVariantPack);
    pack.set_numbers(kPackIds, {1, 2, 3, 4, kScaleId});
    pack.set(kPackPointers, kPointer, static_cast<int64_t>(pointers.size()), pointers.data());
    pack.set(kPackWorkspace, kPointer, 1, &workspace);
    pack.finalize("the operands");
    check_cudnn(library().cudnnBackendExecute(handle, plan_, pack.raw()), "running it");
  }

 private:
  std::string refusal_;
  void* plan_ = nullptr;  // an execution plan; null after a refusal
  int64_t workspace_bytes_ = 0;
};

CudnnAttention::CudnnAttention(Device& device) : device_(device) {}

// Its kernels may still be running, and belong to the plans.
CudnnAttention::~CudnnAttention() {
  if (handle_ == nullptr) return;
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(device_.traits().index);
  cudaStreamSynchronize(device_.stream());
  plans_.clear();
  library().cudnnDestroy(handle_);
  cudaSetDevice(before);
}

const std::string& CudnnAttention::library_problem() { return library().problem; }

std::string CudnnAttention::refusal(const AttentionArgs& args) {
  std::string reason = unsuitable(args);
  return reason.empty() ? plan_of(args).refusal() : reason;
}

void CudnnAttention::run(const AttentionArgs& args) {
  Plan& plan = plan_of(args);
  void* workspace = device_.at_least(workspace_, static_cast<size_t>(plan.workspace_bytes()));
  plan.run(handle_, args, workspace);
}

void CudnnAttention::start() {
  void* handle = nullptr;
  check_cudnn(library().cudnnCreate(&handle), "starting it");
  if (const Status status = library().cudnnSetStream(handle, device_.stream());
      status != kSuccess) {
    library().cudnnDestroy(handle);
    check_cudnn(status, "its stream");
  }
  handle_ = handle;
}

CudnnAttention::Plan& CudnnAttention::plan_of(const AttentionArgs& args) {
  const auto stride = [](const ConstTensorView& view) {
    return view.shape[0] > 1 ? view.row_stride() : view.shape[1];
  };
  const std::string problem = fmt::format(
      "{} {} {} {} {} {} {} {} {}", args.rows(), args.keys(), args.heads, args.kv_heads,
      args.head_dim(), stride(args.q), stride(args.k), stride(args.v), stride(args.out));
  std::unique_ptr<Plan>& plan = plans_[problem];
  if (plan != nullptr) return *plan;
  try {
    if (handle_ == nullptr) start();
    plan = std::make_unique<Plan>(handle_, args);
  } catch (const Error& error) {
    log::debug("{}", error.sentence());
    plan = std::make_unique<Plan>(error.what());
  }
  return *plan;
}

}  // namespace octet::cuda
