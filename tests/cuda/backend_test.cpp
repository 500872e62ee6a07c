// Memory, timing, plans and peers of the CUDA backend.
#include <filesystem>
#include <fstream>

#include "backend/gemm_run.h"
#include "backend/gemm_tuning.h"
#include "base/thread_pool.h"
#include "cuda/cuda_support.h"
#include "formats/temporary_folder.h"
#include "octet/log.h"

namespace octet::test {
namespace {

using CudaBackendTest = OnGpu;

TEST_F(CudaBackendTest, BytesGoThereAndBack) {
  const auto backend = make_gpu();
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{255}, size_t{4} << 20, (size_t{9} << 20) + 13}) {
    std::vector<std::byte> there(bytes), back(bytes);
    std::mt19937 random(3);
    for (auto& byte : there) byte = static_cast<std::byte>(random());
    const Buffer first = backend->allocate(bytes), second = backend->allocate(bytes);
    backend->copy_to_device(first.data(), there.data(), bytes);
    backend->copy(second.data(), first.data(), bytes);
    backend->copy_to_host(back.data(), second.data(), bytes);
    EXPECT_EQ(there, back) << bytes;
  }
}

TEST_F(CudaBackendTest, BuffersOutliveTheBackend) {
  auto backend = make_gpu();
  Buffer buffer = backend->allocate(1000);
  backend.reset();
  buffer = {};
}

TEST_F(CudaBackendTest, TooMuchMemoryIsOneSentence) {
  const auto backend = make_gpu();
  for (const int shift : {50, 40}) {  // more than there are addresses, and more than any GPU has
    try {
      backend->allocate(size_t{1} << shift);
      FAIL() << "accepted";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("out of memory"), std::string::npos) << what;
      EXPECT_NE(what.find("were requested"), std::string::npos) << what;
      EXPECT_NE(what.find("are free"), std::string::npos) << what;
      EXPECT_NE(what.find("smaller `size`"), std::string::npos) << what;
    }
  }
  // And the next calls do not see the error again.
  const Buffer memory = backend->allocate(100), other = backend->allocate(100);
  EXPECT_TRUE(memory);
  backend->copy(other.data(), memory.data(), 100);
  backend->synchronize();
}

TEST_F(CudaBackendTest, MemoryIsCounted) {
  const auto backend = make_gpu();
  const size_t before = backend->memory().used;
  constexpr size_t kBytes = size_t{64} << 20;
  {
    const Buffer first = backend->allocate(kBytes);
    const Buffer second = backend->allocate(kBytes);
    EXPECT_EQ(backend->memory().used, before + 2 * kBytes);
  }
  EXPECT_EQ(backend->memory().used, before);
  EXPECT_EQ(backend->memory().peak, before + 2 * kBytes);
  EXPECT_GE(backend->memory().reserved_peak, 2 * kBytes);
  backend->reset_peak();
  EXPECT_EQ(backend->memory().peak, before);
}

TEST_F(CudaBackendTest, MarksAreInTheOrderOfTheWork) {
  const auto backend = make_gpu();
  const Buffer memory = backend->allocate(1 << 24), other = backend->allocate(1 << 24);
  backend->copy_to_device(memory.data(), std::vector<std::byte>(1 << 24).data(), 1 << 24);
  for (int turn = 0; turn < 3; ++turn) {
    const size_t begin = backend->mark();
    EXPECT_EQ(begin, 0u);
    backend->copy(other.data(), memory.data(), 1 << 24);
    const size_t middle = backend->mark();
    backend->copy(memory.data(), other.data(), 1 << 24);
    const size_t end = backend->mark();
    const double whole = backend->microseconds_between(begin, end);
    const double half = backend->microseconds_between(begin, middle);
    EXPECT_GT(half, 0);
    EXPECT_GT(whole, half);
    EXPECT_THROW(backend->microseconds_between(begin, end + 1), Error);
    backend->forget_marks();
    EXPECT_THROW(backend->microseconds_between(begin, end), Error);
  }
}

TEST_F(CudaBackendTest, PlansOfNothingAreRefused) {
  const auto backend = make_gpu();
  GemmProblem problem;
  problem.m = 0, problem.n = 512, problem.k = 64;
  EXPECT_THROW(backend->tuning().plan_gemm(problem), Error);
  problem.m = 1 << 24, problem.k = 100'000;  // activations of more than 4 GB
  try {
    backend->tuning().plan_gemm(problem);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("4 GB"), std::string::npos) << error.what();
  }
}

TEST_F(CudaBackendTest, NoSuchDevice) {
  EXPECT_THROW(make_cuda_backend({.device = 99}), Error);
  EXPECT_THROW(make_cuda_backend({.device = -1}), Error);
}

TEST_F(CudaBackendTest, ThePoolHasTheThreadsThatWereAskedFor) {
  const auto backend = make_cuda_backend({.threads = 2});
  EXPECT_EQ(backend->pool().threads(), 2);
}

TEST_F(CudaBackendTest, TimesAndCeilingArePositive) {
  const auto backend = make_gpu();
  const Buffer memory = backend->allocate(1 << 20), other = backend->allocate(1 << 20);
  const std::vector<std::byte> zeros(1 << 20);
  backend->copy_to_device(memory.data(), zeros.data(), zeros.size());
  EXPECT_GT(backend->tuning().time_us([&] { backend->copy(other.data(), memory.data(), 1 << 20); }),
            0.0);
  EXPECT_GT(backend->tuning().int8_ceiling(), 1e12);
  EXPECT_GT(backend->tuning().bf16_ceiling(), 1e12);
}

TEST_F(CudaBackendTest, PowerAndClockAreTold) {
  const auto backend = make_gpu();
  std::unique_ptr<PowerGauge> gauge;
  try {
    gauge = backend->tuning().power_gauge();
  } catch (const Error& error) {
    GTEST_SKIP() << "skipped, because " << error.what();
  }
  ASSERT_NE(gauge, nullptr);
  const PowerReading reading = gauge->read();
  EXPECT_GT(reading.watts, 0);
  EXPECT_GT(reading.mhz, 0);
  EXPECT_GT(reading.celsius, 0);
  EXPECT_GT(gauge->limit_watts(), 0);
  const double joules = gauge->joules();  // 0 where the device does not count
  EXPECT_GE(gauge->joules(), joules);
}

TEST_F(CudaBackendTest, PeersGiveOurBits) {
  const auto backend = make_gpu();
  const auto peers = backend->tuning().gemm_peers();
  if (peers.empty()) GTEST_SKIP() << "skipped, because cuBLASLt is not installed";
  constexpr int64_t kM = 96, kN = 128, kK = 256;
  std::mt19937 random(11);
  GuardedMatrix a(DType::i8, kM, kK), w(DType::i8, kN, kK);
  fill_int8(a.view(), random);
  fill_int8(w.view(), random);
  std::vector<float> row_scale = random_floats(kM, random, 1e-3f, 1e-2f);
  std::vector<float> col_scale = random_floats(kN, random, 1e-3f, 1e-2f);
  const OnDevice device_a(*backend, a), device_w(*backend, w);
  const OnDevice device_rows(*backend, row_scale), device_columns(*backend, col_scale);
  const QTensor qa{device_a(a.view()), device_rows(vector_view(row_scale))};
  const QTensor qw{device_w(w.view()), device_columns(vector_view(col_scale))};
  const QWeight packed = backend->pack({w.view(), vector_view(col_scale)}, {}, {});
  GuardedMatrix ours(DType::bf16, kM, kN);
  OnDevice device_ours(*backend, ours);
  backend->gemm({qa, &packed, device_ours(ours.view())}, Fusion::none);
  device_ours.download();
  for (const GemmPeer& peer : peers) {
    GuardedMatrix theirs(DType::bf16, kM, kN);
    OnDevice device_theirs(*backend, theirs);
    peer.run(qa, qw, device_theirs(theirs.view()));
    device_theirs.download();
    EXPECT_TRUE(same_bits(theirs.view(), ours.view())) << peer.name;
  }
}

// The plan file of one process serves the next; nothing that happens to it breaks a run.
class PlanFile : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    ::setenv("OCTET_CACHE_DIR", folder_.path().c_str(), 1);
    log::set_sink([this](log::Level level, std::string_view line) {
      if (level >= log::Level::info) lines_.emplace_back(line);
    });
  }
  void TearDown() override {
    ::unsetenv("OCTET_CACHE_DIR");
    log::set_sink({});
  }

  GemmPlan plan(tune::TuneMode mode) {
    GemmProblem problem;
    problem.m = 200, problem.n = 512, problem.k = 768;
    return make_cuda_backend({.tune = mode})->tuning().plan_gemm(problem);
  }
  std::filesystem::path file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("plans"))) {
      if (entry.path().extension() == ".json") return entry.path();
    }
    return {};
  }

  TemporaryFolder folder_;
  std::vector<std::string> lines_;
};

TEST_F(PlanFile, ServesTheNextProcess) {
  EXPECT_EQ(plan(tune::TuneMode::off).source, GemmPlan::Source::estimate);
  const GemmPlan tuned = plan(tune::TuneMode::missing);
  EXPECT_EQ(tuned.source, GemmPlan::Source::tuned);
  EXPECT_GT(tuned.us, 0.0);
  EXPECT_GT(tuned.reference_us.at(kQuantize), 0.0);
  const GemmPlan again = plan(tune::TuneMode::missing);
  EXPECT_EQ(again.source, GemmPlan::Source::file);
  EXPECT_EQ(again.kernel, tuned.kernel);
  EXPECT_EQ(plan(tune::TuneMode::off).source, GemmPlan::Source::file);
  EXPECT_EQ(plan(tune::TuneMode::all).source, GemmPlan::Source::tuned);
  EXPECT_TRUE(lines_.empty()) << lines_[0];
}

// Each caption has another number of tokens: the first of them measures, those like it do not.
TEST_F(PlanFile, SimilarNumbersOfRowsShareAPlan) {
  const auto backend = make_cuda_backend({.tune = tune::TuneMode::missing});
  for (const int64_t m : {1100, 1279, 1200, 1280}) {
    GemmRun({m, 64, 256}, 1).compare(*backend, DType::bf16, Fusion::none);
  }
  std::ifstream in(file());
  const std::string text(std::istreambuf_iterator<char>(in), {});
  size_t plans = 0;
  for (size_t at = 0; (at = text.find("\"date\"", at)) != text.npos; ++at) ++plans;
  EXPECT_EQ(plans, 1u) << text;
}

TEST_F(PlanFile, DamageNeverBreaksARun) {
  plan(tune::TuneMode::missing);
  const auto path = file();
  ASSERT_FALSE(path.empty());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_EQ(plan(tune::TuneMode::off).source, GemmPlan::Source::estimate);
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(plan(tune::TuneMode::missing).source, GemmPlan::Source::tuned);
  EXPECT_EQ(plan(tune::TuneMode::missing).source, GemmPlan::Source::file);
  std::ofstream(path) << "{\"header\": 7}";
  EXPECT_EQ(plan(tune::TuneMode::missing).source, GemmPlan::Source::tuned);
  std::filesystem::remove(path);
  EXPECT_EQ(plan(tune::TuneMode::missing).source, GemmPlan::Source::tuned);
}

}  // namespace
}  // namespace octet::test
