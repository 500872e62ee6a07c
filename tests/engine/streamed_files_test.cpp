// Networks whose layers are read from their files in each step.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/toy_fixture.h"

namespace octet::test {
namespace {

class StreamedFiles : public ToyFamily {
 protected:
  // A model of this test alone.
  void SetUp() override {
    model_here_ = folder_->file(testing::UnitTest::GetInstance()->current_test_info()->name());
    write_toy_model(model_here_);
  }
  std::string weights() const { return model_here_ + "/" + kToyDenoiser + "/weights.safetensors"; }
  ModelOptions streamed() const {
    ModelOptions made = options(model_here_);
    made.keep = {{kToyDenoiser, Residency::streamed}};
    return made;
  }
  // What `change` does while a picture is denoised.
  static void render_with(Engine& engine, const std::function<void()>& change) {
    RenderCallbacks callbacks;
    callbacks.latent = [&](const LatentStep& step) {
      if (step.step == 1) change();
    };
    PictureRequest asked = request();
    asked.steps = 4;
    engine.render(asked, callbacks);
  }
  std::string model_here_;
};

TEST_F(StreamedFiles, GiveThePictureOfWeightsThatStay) {
  EXPECT_TRUE(same(render(streamed()), render(options(model_here_))));
}

// What is open stays what it was.
TEST_F(StreamedFiles, MayBeReplacedMeanwhile) {
  const Rendered before = render(streamed());
  Engine engine(streamed());
  Rendered made;
  RenderCallbacks callbacks = into(made);
  const auto keep_latent = callbacks.latent;
  callbacks.latent = [&](const LatentStep& step) {
    keep_latent(step);
    if (step.step != 1) return;
    const std::string other = model_here_ + "-other";
    write_toy_model(other, 2);
    std::filesystem::rename(other + "/" + kToyDenoiser + "/weights.safetensors", weights());
  };
  engine.render(request(), callbacks);
  EXPECT_TRUE(same(made, before));
}

TEST_F(StreamedFiles, ThatBecomeShorterAreAnError) {
  Engine engine(streamed());
  const auto bytes = std::filesystem::file_size(weights());
  EXPECT_ERROR_WITH(
      render_with(engine, [&] { std::filesystem::resize_file(weights(), bytes / 2); }),
      "weights.safetensors: ");
}

}  // namespace
}  // namespace octet::test
