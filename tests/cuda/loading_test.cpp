// Loading on the GPU: the checks of every backend, and what is its own: copies beside the work of
// the device, in memory that the two of them share.
#include "backend/loading_run.h"
#include "cuda_support.h"

namespace octet::test::model {
namespace {

class CudaLoading : public OnGpu, public testing::WithParamInterface<size_t> {};

TEST_P(CudaLoading, EqualsRef) {
  const auto backend = make_gpu();
  kLoadingChecks[GetParam()].run(*backend);
}

INSTANTIATE_TEST_SUITE_P(All, CudaLoading, testing::Range<size_t>(0, std::size(kLoadingChecks)),
                         [](const auto& test) { return kLoadingChecks[test.param].name; });

class CudaUploads : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    backend_ = make_gpu();
    for (Buffer& buffer : work_) buffer = backend_->allocate(kWork);
  }
  // Keeps the device busy for some milliseconds, and the host for none.
  void keep_busy() {
    for (int i = 0; i < 20; ++i)
      backend_->copy(work_[i % 2].data(), work_[1 - i % 2].data(), kWork);
  }
  Fill constant(int value) const {
    return [value](std::byte* into, size_t, size_t count) { std::memset(into, value, count); };
  }
  // Whether all bytes of a copy are this value.
  static void expect_all(const std::vector<std::byte>& bytes, int value) {
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), static_cast<std::byte>(value)),
              static_cast<std::ptrdiff_t>(bytes.size()));
  }

  static constexpr size_t kWork = size_t{1} << 30;
  std::unique_ptr<Backend> backend_;
  Buffer work_[2];
};

// Memory that was released while the device is busy must not be written before it is done with it.
TEST_F(CudaUploads, DoNotTouchMemoryThatIsInUse) {
  constexpr size_t kBytes = size_t{48} << 20;
  std::vector<Buffer> kept;
  for (int round = 0; round < 16; ++round) {
    keep_busy();
    const Buffer bytes = backend_->upload(kBytes, constant(round));
    kept.push_back(backend_->allocate(kBytes));
    backend_->copy(kept.back().data(), bytes.data(), kBytes);
    // Of the stream of the ops: taken and given back while they are under way.
    const Buffer scratch = backend_->allocate(kBytes);
    backend_->copy(scratch.data(), bytes.data(), kBytes);
  }
  for (int round = 0; round < 16; ++round) {
    expect_all(bytes_of_buffer(*backend_, kept[static_cast<size_t>(round)]), round);
  }
}

// The host is never more than a bounded number of uploads ahead, so neither is the memory.
TEST_F(CudaUploads, AreBoundedWhenTheDeviceIsSlow) {
  constexpr size_t kBytes = size_t{64} << 20;
  const Buffer to = backend_->allocate(kBytes);
  backend_->reset_peak();
  const size_t before = backend_->memory().reserved_peak;
  for (int round = 0; round < 40; ++round) {
    keep_busy();
    const Buffer bytes = backend_->upload(kBytes, constant(round));
    backend_->copy(to.data(), bytes.data(), kBytes);
  }
  expect_all(bytes_of_buffer(*backend_, to), 39);
  EXPECT_LE(backend_->memory().reserved_peak, before + 8 * kBytes);
}

TEST_F(CudaUploads, PrefetchedBytesWaitForThoseBeforeThem) {
  constexpr size_t kBytes = size_t{32} << 20;
  const Buffer pinned = backend_->allocate_pinned(2 * kBytes);
  std::memset(pinned.data(), 1, kBytes);
  std::memset(pinned.data() + kBytes, 2, kBytes);
  const Buffer slots[] = {backend_->allocate(kBytes), backend_->allocate(kBytes)};
  const Buffer seen = backend_->allocate(kBytes * 8);
  for (size_t layer = 0; layer < 8; ++layer) {
    const Transfer here =
        backend_->prefetch(slots[layer % 2].data(), pinned.data() + layer % 2 * kBytes, kBytes);
    keep_busy();
    backend_->wait(here);
    backend_->copy(seen.data() + layer * kBytes, slots[layer % 2].data(), kBytes);
  }
  const std::vector<std::byte> got = bytes_of_buffer(*backend_, seen);
  for (size_t layer = 0; layer < 8; ++layer) {
    const auto begin = got.begin() + static_cast<std::ptrdiff_t>(layer * kBytes);
    expect_all({begin, begin + kBytes}, static_cast<int>(layer % 2) + 1);
  }
}

// A limit holds for everything that the process takes of the device.
TEST_F(CudaUploads, TakeNoMoreThanALimit) {
  constexpr uint64_t kLimit = uint64_t{2} << 30, kPiece = uint64_t{128} << 20;
  const auto limited = make_cuda_backend({.memory_limit = kLimit});
  const Backend::MemoryLimit limit = limited->memory_limit();
  EXPECT_EQ(limit.bytes, kLimit);
  EXPECT_GT(limit.unavailable, uint64_t{100} << 20);
  EXPECT_LT(limit.unavailable, uint64_t{1} << 30);
  ASSERT_LE(*limited->free_memory(), limit.usable());
  std::vector<Buffer> taken;
  std::string refusal;
  try {
    for (int i = 0; i < 17; ++i) taken.push_back(limited->allocate(kPiece));
  } catch (const OutOfMemory& error) {
    refusal = error.what();
  }
  EXPECT_NE(refusal.find("max_memory"), refusal.npos) << refusal;
  EXPECT_LE(limited->memory().reserved_peak, limit.usable());
  EXPECT_GT(taken.size() * kPiece + 2 * kPiece, limit.usable());
  taken.clear();
  EXPECT_NO_THROW(limited->allocate(kPiece)) << "it can be used again";
}

}  // namespace
}  // namespace octet::test::model
