// The calls of octet/octet.h that name a stream, memory and a plain weight each time, on a GPU: the
// bits of ref, on any stream, in any order, and in a graph.
#include <cuda_runtime_api.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "cuda/check.h"
#include "cuda/cuda_support.h"
#include "octet/octet.h"

namespace octet::test {
namespace {

using cuda::check_cuda;

// Memory of the device that a caller's framework would have.
class Memory {
 public:
  explicit Memory(size_t bytes) {
    check_cuda(cudaMalloc(&data_, bytes), "allocating");
    check_cuda(cudaMemset(data_, 0, bytes), "clearing");
    check_cuda(cudaDeviceSynchronize(), "waiting");
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <class T>
  explicit Memory(const std::vector<T>& values) : Memory(values.size() * sizeof(T)) {
    check_cuda(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
               "copying");
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::vector<float> floats(size_t count) const {
    std::vector<float> values(count);
    check_cuda(cudaDeviceSynchronize(), "waiting");
    check_cuda(cudaMemcpy(values.data(), data_, count * 4, cudaMemcpyDeviceToHost), "copying");
    return values;
  }

 private:
  void* data_ = nullptr;
};

struct Problem {
  int64_t m, n, k;
  bool gate_up = false;
};

// Host data, its result on ref, and the same on the device.
class Linear {
 public:
  explicit Linear(const Problem& problem) : problem_(problem) {
    std::mt19937 random(static_cast<uint32_t>(problem.m * 31 + problem.n));
    const auto count = [](int64_t a, int64_t b) { return static_cast<size_t>(a * b); };
    x_.resize(count(problem.m, problem.k));
    codes_.resize(count(problem.n, problem.k));
    scales_.resize(count(problem.n, 1));
    bias_.resize(problem.gate_up ? 0 : count(problem.n, 1));
    for (float& value : x_) value = static_cast<float>(random() % 2001) * 0.01f - 10.0f;
    for (int8_t& value : codes_) value = static_cast<int8_t>(random());
    for (float& value : scales_) value = static_cast<float>(random() % 100 + 1) * 0.001f;
    for (float& value : bias_) value = static_cast<float>(random() % 100) * 0.1f;
    columns_ = problem.gate_up ? problem.n / 2 : problem.n;
    outputs_ = count(problem.m, columns_);
    expected_.resize(outputs_);
    octet_device* ref = nullptr;
    EXPECT_EQ(octet_device_open("cpu", nullptr, 0, OCTET_TUNE_OFF, &ref), OCTET_OK);
    octet_call call = octet_call_init();
    EXPECT_EQ(
        run(ref, call, x_.data(), codes_.data(), scales_.data(), bias_.data(), expected_.data()),
        OCTET_OK)
        << octet_last_error();
    octet_device_free(ref);
    x_there_ = std::make_unique<Memory>(x_);
    codes_there_ = std::make_unique<Memory>(codes_);
    scales_there_ = std::make_unique<Memory>(scales_);
    if (!problem.gate_up) bias_there_ = std::make_unique<Memory>(bias_);
    y_there_ = std::make_unique<Memory>(outputs_ * sizeof(float));
  }

  octet_status run_on_gpu(octet_device* device, octet_call& call) {
    return run(device, call, x_there_->as<float>(), codes_there_->as<int8_t>(),
               scales_there_->as<float>(), bias_there_ ? bias_there_->as<float>() : nullptr,
               y_there_->as<float>());
  }
  size_t memory_bytes() const { return octet_linear_memory(problem_.m, problem_.k); }
  // Streams that do not wait for the default one must not meet what it clears.
  void forget() {
    check_cuda(cudaMemset(y_there_->as<float>(), 0, outputs_ * 4), "clearing");
    check_cuda(cudaDeviceSynchronize(), "waiting");
  }
  bool is_right() const { return y_there_->floats(outputs_) == expected_; }

 private:
  octet_status run(octet_device* device, octet_call& call, float* x, const int8_t* codes,
                   const float* scales, const float* bias, float* y) const {
    octet_plain_weight weight = octet_plain_weight_init();
    weight.codes = codes;
    weight.n = problem_.n;
    weight.k = problem_.k;
    weight.scales = scales;
    weight.scale_count = problem_.n;
    weight.bias = problem_.gate_up ? nullptr : bias;
    weight.bias_dtype = OCTET_F32;
    weight.gate_up = problem_.gate_up ? 1 : 0;
    const octet_matrix from = {x, problem_.m, problem_.k, 0, OCTET_F32, 0};
    const octet_matrix to = {y, problem_.m, columns_, 0, OCTET_F32, 0};
    return octet_call_linear(device, &call, &weight, nullptr, &from, &to);
  }

  Problem problem_;
  int64_t columns_ = 0;
  size_t outputs_ = 0;
  std::vector<float> x_, scales_, bias_, expected_;
  std::vector<int8_t> codes_;
  std::unique_ptr<Memory> x_there_, codes_there_, scales_there_, bias_there_, y_there_;
};

// What a caller gives besides; all of it stays until the end.
class Givings {
 public:
  static void* allocate(void* self, size_t bytes) {
    return static_cast<Givings*>(self)->more(bytes);
  }
  void* more(size_t bytes) { return given_.emplace_back(bytes).as<void>(); }
  size_t count() const { return given_.size(); }

 private:
  std::deque<Memory> given_;
};

class CallsOnGpu : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(octet_device_open("cuda:0", nullptr, 0, OCTET_TUNE_OFF, &device_), OCTET_OK)
        << octet_last_error();
  }
  void TearDown() override { octet_device_free(device_); }

  octet_call call_on(cudaStream_t stream) {
    octet_call call = octet_call_init();
    call.stream = stream;
    call.allocate = &Givings::allocate;
    call.user = &givings_;
    return call;
  }

  octet_device* device_ = nullptr;
  Givings givings_;
  std::vector<std::unique_ptr<Memory>> pools_;
};

TEST_F(CallsOnGpu, GiveTheBitsOfRefOnAnyStream) {
  for (const Problem& problem : {Problem{70, 96, 128},
                                 {1, 64, 4608},
                                 {300, 1024, 640},
                                 {70, 96, 128, true},
                                 {33, 40, 72},  // packed on the way
                                 {9, 90, 48, true}}) {
    Linear linear(problem);
    cudaStream_t side = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "making a stream");
    for (cudaStream_t stream : {cudaStream_t{nullptr}, side}) {
      linear.forget();
      octet_call call = call_on(stream);
      const Memory memory(linear.memory_bytes());
      call.memory = memory.as<void>();
      call.memory_bytes = linear.memory_bytes();
      ASSERT_EQ(linear.run_on_gpu(device_, call), OCTET_OK) << octet_last_error();
      EXPECT_TRUE(linear.is_right()) << problem.m << " " << problem.n << " " << problem.k;
      EXPECT_EQ(std::string(call.kernel).substr(0, 2), "sm");
    }
    check_cuda(cudaStreamDestroy(side), "ending a stream");
  }
}

TEST_F(CallsOnGpu, TakeMemoryFromTheCallerAlone) {
  Linear linear({70, 96, 128});
  octet_call call = call_on(nullptr);
  ASSERT_EQ(linear.run_on_gpu(device_, call), OCTET_OK) << octet_last_error();
  EXPECT_TRUE(linear.is_right());
  EXPECT_GT(givings_.count(), 0u);
  call.allocate = nullptr;
  EXPECT_EQ(linear.run_on_gpu(device_, call), OCTET_OUT_OF_MEMORY);
  call.allocate = [](void*, size_t) -> void* { return nullptr; };
  EXPECT_EQ(linear.run_on_gpu(device_, call), OCTET_OUT_OF_MEMORY);
  EXPECT_NE(std::string(octet_last_error()).find("gave none"), std::string::npos);
}

// Tiles that are shared along k count in memory, which several graphs must not have in common.
TEST_F(CallsOnGpu, CanBeCapturedIntoGraphsThatRunAtTheSameTime) {
  Linear one({128, 256, 16384}), other({16, 512, 8192});
  cudaStream_t streams[2];
  cudaGraphExec_t graphs[2];
  Linear* linears[] = {&one, &other};
  for (int i = 0; i < 2; ++i) {
    check_cuda(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "making a stream");
    // Memory is not allocated within a capture: a framework has it beforehand.
    const Memory& pool = *pools_.emplace_back(std::make_unique<Memory>(64 << 20));
    octet_call call = octet_call_init();
    call.stream = streams[0];
    call.memory = pool.as<void>();
    call.memory_bytes = 64 << 20;
    check_cuda(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal), "capturing");
    const octet_status status = linears[i]->run_on_gpu(device_, call);
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(streams[0], &graph), "capturing");
    ASSERT_EQ(status, OCTET_OK) << octet_last_error();
    check_cuda(cudaGraphInstantiateWithFlags(&graphs[i], graph, 0), "making a graph");
    cudaGraphDestroy(graph);
  }
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (Linear* linear : linears) linear->forget();
    for (int i = 0; i < 2; ++i) check_cuda(cudaGraphLaunch(graphs[i], streams[i]), "running");
    for (Linear* linear : linears) EXPECT_TRUE(linear->is_right());
  }
  for (int i = 0; i < 2; ++i) {
    cudaGraphExecDestroy(graphs[i]);
    cudaStreamDestroy(streams[i]);
  }
}

TEST_F(CallsOnGpu, ServeThreadsWithStreamsOfTheirOwn) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Linear linear({64 + i, 128, 512});
      const Memory memory(linear.memory_bytes());
      cudaStream_t stream = nullptr;
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
      octet_call call = octet_call_init();
      call.stream = stream;
      call.memory = memory.as<void>();
      call.memory_bytes = linear.memory_bytes();
      Givings givings;
      call.allocate = &Givings::allocate;
      call.user = &givings;
      for (int repeat = 0; repeat < 20; ++repeat) {
        ASSERT_EQ(linear.run_on_gpu(device_, call), OCTET_OK) << octet_last_error();
      }
      right += linear.is_right() ? 1 : 0;
      cudaStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

}  // namespace
}  // namespace octet::test
