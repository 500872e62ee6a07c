// A model's file that is truncated while it is being read ends the work with a sentence, and
// nothing that was made from its lost bytes is kept. A second in all.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "convert/quantizing.h"
#include "formats/error_message.h"
#include "models/tokenizer/unicode.h"
#include "octet/generate.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

// --- quantize ---

class ShrinkingSource : public Quantizing {
 protected:
  // The sentence when the source loses its second half as soon as `stage` has begun.
  std::string quantize_until(QuantizeStage stage, const convert::QuantizeOptions& options) {
    const std::string weights = source_ + "/diffusion_pytorch_model.safetensors";
    const auto whole = fs::file_size(weights);
    return error_of([&] {
      quantize(folder_.file("out"), options, [&](const QuantizeStep& progress) {
        if (progress.stage == stage) fs::resize_file(weights, whole / 2);
        return true;
      });
    });
  }
};

TEST_F(ShrinkingSource, IsNotQuantized) {
  for (const char* recipe : {"rowwise", "convrot", "smoothquant"}) {
    for (const bool protects : {false, true}) {
      SCOPED_TRACE(std::string(recipe) + (protects ? ", all in floating point" : ""));
      write_source();
      convert::QuantizeOptions options = {.statistics = make_statistics()};
      options.recipe = parse_recipe(recipe);
      if (protects) options.protection = parse_protection("*");
      const std::string message = quantize_until(QuantizeStage::write, options);
      EXPECT_TRUE(contains(message, "source/diffusion_pytorch_model.safetensors: became shorter"))
          << message;
      EXPECT_FALSE(fs::exists(folder_.file("out")));
    }
  }
  // The same command, once the file is whole again.
  write_source();
  quantize(folder_.file("out"), {});
  verify(folder_.file("out"), {});
  EXPECT_EQ(folder_.entries(), 2u) << "something is left beside the output";
}

TEST_F(ShrinkingSource, IsNotMeasured) {
  write_source();
  EXPECT_TRUE(
      contains(quantize_until(QuantizeStage::measure, {.measure = true}), "became shorter"));
  EXPECT_FALSE(fs::exists(folder_.file("out")));
}

// --- generate ---

class ShrinkingModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  }
  ShrinkingModel() {
    fs::copy(golden_path("model"), folder_.file("model"), fs::copy_options::recursive);
    request_.model.model = folder_.file("model");
    request_.picture.caption =
        R"({"high_level_description": "a cat", "compositional_deconstruction":
                           {"background": "a wall", "elements": []}})";
    request_.model.convention = Convention::diffusers;
    request_.picture.size = {16, 16};
    request_.picture.steps = 1;
    request_.model.device = "cpu";
    request_.model.threads = 1;
  }

  // The sentence when a file loses its second half as soon as a stage has begun.
  std::string generate_until(Stage stage, const std::string& file) {
    const std::string path = request_.model.model + "/" + file;
    const auto whole = fs::file_size(path);
    const std::string message = error_of([&] {
      RenderCallbacks callbacks{.picture = [&](const Picture&) { ++pictures_; }};
      callbacks.progress = [&](const RenderProgress& progress) {
        if (progress.stage == stage) fs::resize_file(path, whole / 2);
        return true;
      };
      generate(request_, callbacks);
    });
    return message;
  }

  TemporaryFolder folder_;
  GenerateRequest request_;
  int pictures_ = 0;
};

TEST_F(ShrinkingModel, MakesAPictureWhenNothingHappens) {
  generate(request_, {.picture = [&](const Picture&) { ++pictures_; }});
  EXPECT_EQ(pictures_, 1);
}

TEST_F(ShrinkingModel, MakesNoPictureOfATruncatedTransformer) {
  const std::string file = "transformer/diffusion_pytorch_model.safetensors";
  EXPECT_TRUE(contains(generate_until(Stage::load, file), file + ": became shorter"));
  EXPECT_EQ(pictures_, 0);
}

TEST_F(ShrinkingModel, MakesNoPictureOfATruncatedTextEncoder) {
  const std::string file = "text_encoder/model.safetensors";
  EXPECT_TRUE(contains(generate_until(Stage::text, file), file + ": became shorter"));
  EXPECT_EQ(pictures_, 0);
}

// --- everything else stays as it was ---

// Nobody else handles the signal in this program, but for the sanitizer, which ends it too.
TEST(OtherBusErrors, EndTheProgram) {
  const TemporaryFolder folder;
  const MappedFile file(folder.write("data", "octet"));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::raise(SIGBUS);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace octet::test
