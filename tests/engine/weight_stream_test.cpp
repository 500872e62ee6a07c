// Weights that come and go while networks run.
#include "engine/weight_stream.h"

#include "cpu/cpu_backend.h"
#include "engine/streamed_run.h"
#include "formats/error_message.h"
#include "ref/ref_backend.h"

namespace octet::test {
namespace {

TEST(WeightStream, GivesTheBitsOfWeightsThatStay) {
  expect_streamed_velocities_right(*make_cpu_backend({.threads = 2}), /*launched=*/false);
}

// Unless all have a buffer of their own: then each comes once.
TEST(WeightStream, SendsEachUnitOnceForEachPass) {
  const auto backend = make_ref_backend();
  const auto three_wait = [](size_t, int64_t unit) {
    return unit == 1 || unit == 3 || unit == 5 ? Residency::host : Residency::device;
  };
  StreamedNetworks few(*backend, three_wait, 6), many(*backend, three_wait, 3);
  few.open();
  many.open();
  for (const int64_t at : {0, 1, 2}) {
    few.step(at);
    many.step(at);
  }
  // Six equal blocks in each of three steps, and two that are ahead.
  EXPECT_GT(few.stream.sent_bytes(), 0u);
  EXPECT_EQ(6 * many.stream.sent_bytes(), 20 * few.stream.sent_bytes());
}

// Between the layers of a pass, while the next ones are on their way.
TEST(WeightStream, IsStoppedWithinAPassAndGoesOn) {
  class StopsAtOp : public OpObserver {
   public:
    explicit StopsAtOp(std::atomic<bool>& stop) : stop_(stop) {}
    void before(std::string_view) override {
      if (--left == 0) stop_ = true;
      ++seen;
    }
    void after(const OpRecord&) override {}
    int left = -1, seen = 0;

   private:
    std::atomic<bool>& stop_;
  };
  const auto backend = make_ref_backend();
  StreamedNetworks net(
      *backend, [](size_t, int64_t) { return Residency::host; }, 3);
  net.open();
  for (const int64_t at : {0, 1}) net.step(at);
  const auto expected = net.step(2);
  StopsAtOp observer(net.stop);
  backend->set_op_observer(&observer);
  net.step(2);
  const int ops = observer.seen;
  for (const int at_op : {ops / 4, ops / 2, ops * 3 / 4}) {
    observer.left = at_op;
    EXPECT_THROW(net.step(2), Cancelled);
    EXPECT_LT(observer.left, 1);
    net.stop = false;
    EXPECT_EQ(net.step(2), expected) << at_op;
  }
  backend->set_op_observer(nullptr);
}

TEST(WeightStream, SaysWhatDoesNotFitItsBuffers) {
  const auto backend = make_ref_backend();
  nn::Context ctx{*backend, DType::f32};
  ideogram4::Transformer network(small_dit(2, 96), /*conditional=*/false);
  engine::PartStore store(network, ctx, Residency::host);
  store.rules().random = 1;
  store.load();
  engine::WeightStream stream(*backend, 2, 1000);
  engine::PartStore* const stores[] = {&store};
  EXPECT_ERROR_WITH(stream.open(stores), "bytes, and its place has 1000");
  EXPECT_FALSE(stream.is_open());
}

}  // namespace
}  // namespace octet::test
