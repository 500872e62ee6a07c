// The calls of octet/octet.h that name a stream, memory and a plain weight each time, on a GPU: the
// bits of ref, on any stream, in any order, and in a graph.
#include <atomic>
#include <filesystem>
#include <thread>

#include "cuda/linear_calls.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

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

TEST_F(CallsOnGpu, ReadWeightsInEachForm) {
  for (const Problem& problem : {
           Problem{.m = 70, .n = 96, .k = 128, .one_scale = true},
           {.m = 33, .n = 40, .k = 72, .one_scale = true},
           {.m = 70, .n = 96, .k = 128, .gate_up = true, .one_scale = true},
           {.m = 70, .n = 96, .k = 128, .bias_dtype = OCTET_BF16, .x_dtype = OCTET_BF16},
           {.m = 19, .n = 100, .k = 128, .bias_dtype = OCTET_F16, .x_dtype = OCTET_F16},
           {.m = 40, .n = 64, .k = 256, .x_dtype = OCTET_BF16, .stepwise = true},
           {.m = 40, .n = 64, .k = 256, .x_dtype = OCTET_F16, .stepwise = true},
       }) {
    SCOPED_TRACE(testing::Message() << problem.m << " " << problem.n << " " << problem.k);
    Linear linear(problem);
    octet_call call = call_on(nullptr);
    ASSERT_EQ(linear.run_on_gpu(device_, call), OCTET_OK) << octet_last_error();
    EXPECT_TRUE(linear.is_right());
  }
}

TEST_F(CallsOnGpu, ReadPackedWeights) {
  for (const Problem& problem : {Problem{70, 96, 128}, {33, 40, 72}, {70, 96, 128, true}}) {
    Linear linear(problem);
    octet_call call = call_on(nullptr);
    ASSERT_EQ(linear.run_packed_on_gpu(device_, call), OCTET_OK) << octet_last_error();
    EXPECT_TRUE(linear.is_right()) << problem.m << " " << problem.n << " " << problem.k;
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
  call.allocate = [](void* givings, size_t bytes) -> void* {
    return static_cast<std::byte*>(Givings::allocate(givings, bytes + 16)) + 16;
  };
  EXPECT_NE(linear.run_on_gpu(device_, call), OCTET_OK);
  EXPECT_NE(std::string(octet_last_error()).find("not a multiple of 256"), std::string::npos);
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

// Kernels are measured on the device's own stream, in between; never while a graph is made.
class CallsThatTune : public CallsOnGpu {
 protected:
  void SetUp() override {
    ::setenv("OCTET_CACHE_DIR", folder_.path().c_str(), 1);
    OnGpu::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(octet_device_open("cuda:0", nullptr, 0, OCTET_TUNE_MISSING, &device_), OCTET_OK)
        << octet_last_error();
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    CallsOnGpu::TearDown();
    ::unsetenv("OCTET_CACHE_DIR");
  }
  bool has_measured() const { return std::filesystem::exists(folder_.file("plans")); }

  TemporaryFolder folder_;
  cudaStream_t stream_ = nullptr;
};

TEST_F(CallsThatTune, MeasureInBetween) {
  Linear linear({70, 256, 512});
  for (int repeat = 0; repeat < 2; ++repeat) {
    linear.forget();
    octet_call call = call_on(stream_);
    ASSERT_EQ(linear.run_on_gpu(device_, call), OCTET_OK) << octet_last_error();
    EXPECT_TRUE(linear.is_right());
  }
  EXPECT_TRUE(has_measured());
}

TEST_F(CallsThatTune, DoNotMeasureInACapture) {
  Linear linear({70, 256, 512});
  const Memory pool(64 << 20);
  octet_call call = octet_call_init();
  call.stream = stream_;
  call.memory = pool.as<void>();
  call.memory_bytes = 64 << 20;
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing");
  const octet_status status = linear.run_on_gpu(device_, call);
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream_, &graph), "capturing");
  ASSERT_EQ(status, OCTET_OK) << octet_last_error();
  EXPECT_FALSE(has_measured());
  cudaGraphExec_t ready = nullptr;
  check_cuda(cudaGraphInstantiateWithFlags(&ready, graph, 0), "making a graph");
  cudaGraphDestroy(graph);
  check_cuda(cudaGraphLaunch(ready, stream_), "running");
  EXPECT_TRUE(linear.is_right());
  cudaGraphExecDestroy(ready);
  // The estimate was for that graph alone.
  linear.forget();
  ASSERT_EQ(linear.run_on_gpu(device_, call), OCTET_OK) << octet_last_error();
  EXPECT_TRUE(linear.is_right());
  EXPECT_TRUE(has_measured());
}

// On a host nobody looks at it.
TEST_F(CallsOnGpu, RefuseMemoryThatMakesNoSense) {
  Linear linear({8, 32, 64});
  const Memory pool(4096);
  for (std::byte* memory : {static_cast<std::byte*>(nullptr), pool.as<std::byte>() + 8}) {
    octet_call call = call_on(nullptr);
    call.memory = memory;
    call.memory_bytes = 1024;
    EXPECT_EQ(linear.run_on_gpu(device_, call), OCTET_INVALID_REQUEST);
    EXPECT_STREQ(octet_last_error_field(), "memory");
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
