// Pictures where memory is short by the time they are decoded.
#include <gtest/gtest.h>

#include "engine/toy_fixture.h"

namespace octet::test {
namespace {

class Decoding : public ToyFamily {
 protected:
  void SetUp() override { ToyDecoder::tries = 0; }
  void TearDown() override { ToyDecoder::refused = ToyDecoder::Refused::none; }
};

TEST_F(Decoding, MakesDoWithTheLeast) {
  Engine engine(options());
  const Rendered before = render(engine);
  EXPECT_EQ(ToyDecoder::tries, 1);
  ToyDecoder::refused = ToyDecoder::Refused::whole;
  EXPECT_TRUE(same(render(engine), before));
  EXPECT_EQ(ToyDecoder::tries, 3);
}

TEST_F(Decoding, IsTriedTwiceAtMost) {
  Engine engine(options());
  ToyDecoder::refused = ToyDecoder::Refused::all;
  EXPECT_ERROR_WITH(render(engine), "no memory for images");
  EXPECT_EQ(ToyDecoder::tries, 2);
  ToyDecoder::refused = ToyDecoder::Refused::none;
  EXPECT_EQ(render(engine).pictures.size(), 1u) << "the engine goes on";
}

}  // namespace
}  // namespace octet::test
