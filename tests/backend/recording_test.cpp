// Work that runs several times: its memory is planned once, and its results are those of before.
#include "backend/recording.h"

#include <gtest/gtest.h>

#include <random>

#include "backend/memory_plan.h"
#include "cpu/cpu_backend.h"
#include "formats/error_message.h"
#include "support.h"

namespace octet::test {
namespace {

TEST(MemoryPlan, PutsWhatIsNotInUseTogetherIntoTheSamePlace) {
  MemoryPlan plan;
  const size_t a = plan.add(1000), b = plan.add(256), empty = plan.add(0);
  EXPECT_EQ(plan.places()[a].offset, 0u);
  EXPECT_EQ(plan.places()[b].offset, 1024u);
  EXPECT_EQ(plan.places()[empty].offset, 1280u);
  plan.remove(a);
  const size_t small = plan.add(300), large = plan.add(600);
  EXPECT_EQ(plan.places()[small].offset, 0u) << "the lowest that fits";
  EXPECT_EQ(plan.places()[large].offset, 1536u) << "half of it is taken";
  EXPECT_EQ(plan.bytes(), 1536u + 768u);
  for (const size_t number : {b, empty, small, large}) plan.remove(number);
  EXPECT_TRUE(plan.is_empty());
  EXPECT_EQ(plan.bytes(), 1536u + 768u) << "the most that there was";
}

TEST(MemoryPlan, NothingThatIsInUseOverlaps) {
  std::mt19937 random(3);
  MemoryPlan plan;
  std::vector<size_t> live;
  for (int i = 0; i < 2000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      const size_t which = random() % live.size();
      plan.remove(live[which]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const size_t number = plan.add(random() % 5000);
    const auto place = plan.places()[number];
    EXPECT_EQ(place.offset % 256, 0u);
    EXPECT_LE(place.offset + place.bytes, plan.bytes());
    for (const size_t other : live) {
      const auto taken = plan.places()[other];
      EXPECT_TRUE(place.offset + place.bytes <= taken.offset ||
                  taken.offset + taken.bytes <= place.offset);
    }
    live.push_back(number);
  }
}

class RecordingTest : public testing::Test {
 protected:
  // out = 4 x, by way of two temporary matrices.
  void quadruple() {
    const TensorView x = view(x_), out = view(out_);
    const Buffer once = backend_->allocate(kBytes);
    backend_->copy(once.data(), x.data, kBytes);
    backend_->add(view(once), x);
    const Buffer twice = backend_->allocate(kBytes);
    backend_->copy(twice.data(), once.data(), kBytes);
    backend_->add(view(twice), view(once));
    backend_->copy(out.data, twice.data(), kBytes);
  }
  static TensorView view(const Buffer& buffer) { return buffer.view(DType::f32, {2, 4}); }
  void set_x(float value) { std::fill_n(view(x_).as<float>(), 8, value); }
  float result() const { return view(out_).as<float>()[7]; }

  static constexpr size_t kBytes = 8 * sizeof(float);
  std::unique_ptr<Backend> backend_ = make_cpu_backend({.threads = 1});
  Buffer x_ = backend_->allocate(kBytes), out_ = backend_->allocate(kBytes);
};

TEST_F(RecordingTest, RunsAgainOnWhatTheViewsHoldAndAllocatesOnce) {
  const auto recording = backend_->record([this] { quadruple(); });
  auto allocations = [&, before = backend_->memory().allocations]() mutable {
    return backend_->memory().allocations - std::exchange(before, backend_->memory().allocations);
  };
  const std::vector<size_t> expected = {2, 1, 0, 0};  // by itself, the block, none
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<float>(i + 1);
    set_x(value);
    recording->run();
    EXPECT_EQ(result(), 4 * value);
    EXPECT_EQ(allocations(), expected[i]) << i;
  }
}

TEST_F(RecordingTest, RecordingsShareTheirMemory) {
  const size_t before = backend_->memory().used;
  {
    const auto one = backend_->record([this] { quadruple(); });
    const auto other = backend_->record([this] { quadruple(); });
    for (int i = 0; i < 3; ++i) {
      one->run();
      other->run();
    }
    EXPECT_EQ(backend_->memory().used, before + 512) << "two places in one block";
  }
  EXPECT_EQ(backend_->memory().used, before);
}

TEST_F(RecordingTest, ObserversSeeEveryCall) {
  class Count : public OpObserver {
   public:
    void before(std::string_view) override {}
    void after(const OpRecord&) override { ++ops; }
    int ops = 0;
  } count;
  backend_->set_op_observer(&count);
  const auto recording = backend_->record([this] { quadruple(); });
  for (int i = 0; i < 3; ++i) recording->run();
  backend_->set_op_observer(nullptr);
  EXPECT_EQ(count.ops, 6);
}

TEST_F(RecordingTest, GoesOnAfterAFailure) {
  int run = 0;
  const auto recording = backend_->record([&] {
    const Buffer extra = backend_->allocate(1);
    if (run == 0 || run == 3) fail("run {} fails", run);
    quadruple();
  });
  set_x(2);
  for (; run < 6; ++run) {
    if (run == 0 || run == 3) {
      EXPECT_ERROR_WITH(recording->run(), "run " + std::to_string(run) + " fails");
    } else {
      recording->run();
      EXPECT_EQ(result(), 8);
    }
  }
}

TEST_F(RecordingTest, RefusesWorkThatKeepsMemoryOrAllocatesOtherwise) {
  Buffer kept;
  const auto keeps = backend_->record([&] { kept = backend_->allocate(1); });
  EXPECT_ERROR_WITH(keeps->run(), "1 allocations of the recorded work outlive it");
  size_t bytes = 100;
  const auto grows = backend_->record([&] { const Buffer temporary = backend_->allocate(bytes); });
  grows->run();
  bytes = 101;
  EXPECT_ERROR_WITH(grows->run(), "allocation 0 takes 101 bytes, and took 100 the first time");
  int count = 1;
  const auto more = backend_->record([&] {
    for (int i = 0; i < count; ++i) backend_->allocate(1);
  });
  more->run();
  count = 2;
  EXPECT_ERROR_WITH(more->run(), "allocation 1 takes 1 bytes, and was not there the first time");
  const auto nested = backend_->record([&] { grows->run(); });
  EXPECT_ERROR_WITH(nested->run(), "runs other recorded work");
}

}  // namespace
}  // namespace octet::test
