// octet::Engine on the small model of tests/golden: what stays loaded, what a call may do, and what
// it leaves behind.
#include "octet/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/golden_run.h"
#include "octet/error.h"
#include "octet/generate.h"
#include "weights/written_tensors.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

std::string caption_of(const std::string& what) {
  return R"({"high_level_description":")" + what +
         R"(","compositional_deconstruction":{"background":"a wall","elements":[]}})";
}

PictureRequest picture_of(const std::string& what, int width = 16, int height = 16) {
  PictureRequest request;
  request.caption = caption_of(what);
  request.size = {width, height};
  request.preset = "turbo";
  request.steps = 4;
  request.seed = 3;
  return request;
}

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
    options_.model = golden_path("model");
    options_.convention = Convention::diffusers;
    options_.device = "cpu";
    options_.threads = 1;
  }

  static std::vector<uint8_t> pixels(Engine& engine, const PictureRequest& request) {
    std::vector<uint8_t> rgb;
    engine.render(request, {.picture = [&](const Picture& picture) { rgb = picture.rgb; }});
    EXPECT_FALSE(rgb.empty());
    return rgb;
  }

  // By an engine of its own.
  std::vector<uint8_t> alone(const PictureRequest& request, ModelOptions options) const {
    std::vector<uint8_t> rgb;
    generate({std::move(options), request},
             {.picture = [&](const Picture& picture) { rgb = picture.rgb; }});
    return rgb;
  }

  std::string write_lora() {
    constexpr int64_t kHidden = 32;
    std::vector<float> down(kHidden), up(kHidden);
    for (size_t i = 0; i < down.size(); ++i) {
      down[i] = 0.1f * static_cast<float>(i % 5);
      up[i] = 0.2f - 0.03f * static_cast<float>(i);
    }
    const std::string file = folder_.file("lora.safetensors");
    const std::string module = "transformer.layers.0.attention.to_out.0";
    write_tensors(file, {written(module + ".lora_A.weight", {1, kHidden}, down),
                         written(module + ".lora_B.weight", {kHidden, 1}, up)});
    return file;
  }

  TemporaryFolder folder_;
  ModelOptions options_;
};

TEST_F(EngineTest, MakesWhatAnEngineOfItsOwnMakes) {
  Engine engine(options_);
  for (const auto& request :
       {picture_of("a cat"), picture_of("a dog", 32, 16), picture_of("a cat", 16, 32)}) {
    EXPECT_EQ(pixels(engine, request), alone(request, options_));
  }
}

TEST_F(EngineTest, EncodesARepeatedCaptionOnce) {
  Engine engine(options_);
  const PictureRequest request = picture_of("a cat");
  std::vector<Stage> stages;
  const RenderCallbacks watch{.progress = [&](const RenderProgress& progress) {
    stages.push_back(progress.stage);
    return true;
  }};
  EXPECT_FALSE(engine.render(request, watch).text_cached);
  stages.clear();
  PictureRequest again = request;
  again.seed = 4;
  EXPECT_TRUE(engine.render(again, watch).text_cached);
  EXPECT_EQ(std::count(stages.begin(), stages.end(), Stage::text), 0);
  EXPECT_EQ(std::count(stages.begin(), stages.end(), Stage::load), 0) << "nothing is loaded again";
}

TEST_F(EngineTest, RecordedStepsMakeTheSamePictures) {
  PictureRequest request = picture_of("a cat");
  request.images = 2;
  const auto recorded = alone(request, options_);
  ::setenv("OCTET_GRAPH", "0", 1);
  const auto plain = alone(request, options_);
  ::unsetenv("OCTET_GRAPH");
  EXPECT_EQ(recorded, plain);
}

TEST_F(EngineTest, TellsOfStepsWithATimeThatIsLeft) {
  Engine engine(options_);
  std::vector<double> eta;
  int64_t last = -1;
  engine.render(picture_of("a cat"), {.progress = [&](const RenderProgress& progress) {
                  if (progress.stage != Stage::denoise) return true;
                  EXPECT_EQ(progress.total, 4);
                  EXPECT_EQ(progress.done, last + 1);
                  last = progress.done;
                  eta.push_back(progress.eta_s);
                  return true;
                }});
  EXPECT_EQ(last, 4);
  ASSERT_EQ(eta.size(), 5u);
  EXPECT_LT(eta[0], 0) << "nothing is known yet";
  for (size_t i = 1; i < eta.size(); ++i) EXPECT_GE(eta[i], 0);
}

TEST_F(EngineTest, ShowsAPreviewOfEachStep) {
  Engine engine(options_);
  std::vector<Preview> previews;
  const auto shown = pixels(engine, picture_of("a cat", 32, 16));
  engine.render(picture_of("a cat", 32, 16),
                {.preview = [&](const Preview& preview) { previews.push_back(preview); },
                 .picture = [&](const Picture& picture) { EXPECT_EQ(picture.rgb, shown); }});
  ASSERT_EQ(previews.size(), 4u);
  const int side = engine.info().token_side;
  for (size_t i = 0; i < previews.size(); ++i) {
    EXPECT_EQ(previews[i].step, static_cast<int>(i) + 1);
    EXPECT_EQ(previews[i].width, 32 / side);
    EXPECT_EQ(previews[i].height, 16 / side);
    EXPECT_EQ(previews[i].rgb.size(),
              static_cast<size_t>(3 * previews[i].width * previews[i].height));
  }
}

TEST_F(EngineTest, SwitchesALoraOnAndOff) {
  const std::string file = write_lora();
  const PictureRequest request = picture_of("a cat");
  Engine engine(options_);
  const auto plain = pixels(engine, request);
  engine.set_loras({{.file = file, .strength = 2}});
  const auto with_lora = pixels(engine, request);
  EXPECT_NE(with_lora, plain);
  ModelOptions options = options_;
  options.loras = {{.file = file, .strength = 2}};
  EXPECT_EQ(with_lora, alone(request, options));
  EXPECT_EQ(engine.info().loras, options.loras);
  EXPECT_ERROR_WITH(engine.set_loras({{.file = folder_.file("none.safetensors")}}), "none");
  EXPECT_EQ(pixels(engine, request), with_lora) << "the one before is still there";
  engine.set_loras({});
  EXPECT_EQ(pixels(engine, request), plain);
}

TEST_F(EngineTest, NamesTheSameCheckpointWithALoraSwitchedOnOrLoaded) {
  const std::string file = write_lora();
  const PictureRequest request = picture_of("a cat");
  ModelOptions options = options_;
  options.loras = {{.file = file}};
  Engine loaded(options), switched(options_);
  const std::string plain = switched.render(request).checkpoint;
  switched.set_loras(options.loras);
  const std::string with_lora = switched.render(request).checkpoint;
  EXPECT_EQ(with_lora, loaded.render(request).checkpoint);
  EXPECT_NE(with_lora, plain);
}

TEST_F(EngineTest, CancelEndsARenderAndTheNextIsAsEver) {
  Engine engine(options_);
  const PictureRequest request = picture_of("a cat");
  const auto expected = pixels(engine, request);
  int steps = 0;
  bool pictures = false;
  std::thread other;
  RenderCallbacks callbacks{.picture = [&](const Picture&) { pictures = true; }};
  callbacks.progress = [&](const RenderProgress& progress) {
    if (progress.stage == Stage::denoise) steps = static_cast<int>(progress.done);
    if (steps == 2 && !other.joinable()) {
      other = std::thread([&] { engine.cancel(); });
      other.join();
      other = std::thread([] {});
    }
    return true;
  };
  EXPECT_THROW(engine.render(request, callbacks), Cancelled);
  other.join();
  EXPECT_EQ(steps, 2) << "it ends within the third step";
  EXPECT_FALSE(pictures);
  EXPECT_EQ(pixels(engine, request), expected);
}

TEST_F(EngineTest, CancelWithoutACallDoesNothing) {
  Engine engine(options_);
  engine.cancel();
  EXPECT_FALSE(pixels(engine, picture_of("a cat")).empty());
}

TEST_F(EngineTest, ACallbackMayNotCallTheEngine) {
  Engine engine(options_);
  std::string message;
  engine.render(picture_of("a cat"), {.picture = [&](const Picture&) {
                  message = error_of([&] { engine.render(picture_of("a dog")); });
                }});
  EXPECT_TRUE(contains(message, "callback")) << message;
}

TEST_F(EngineTest, CallsOfSeveralThreadsTakeTurns) {
  Engine engine(options_);
  const PictureRequest request = picture_of("a cat");
  const auto expected = pixels(engine, request);
  std::atomic<int> inside{0}, equal{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::vector<uint8_t> rgb;
      engine.render(request, {.progress =
                                  [&](const RenderProgress&) {
                                    EXPECT_EQ(++inside, 1);
                                    --inside;
                                    return true;
                                  },
                              .picture = [&](const Picture& picture) { rgb = picture.rgb; }});
      if (rgb == expected) ++equal;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 3);
}

TEST_F(EngineTest, MemoryDoesNotGrow) {
  Engine engine(options_);
  std::vector<PictureRequest> requests = {picture_of("a cat"), picture_of("a dog", 32, 16)};
  for (PictureRequest& request : requests) request.steps = 1;
  for (const PictureRequest& request : requests) engine.render(request);
  const RenderReport first = engine.render(requests[1]);
  engine.set_loras({});  // publishes what is in use
  const uint64_t used = engine.info().used_bytes;
  for (int i = 0; i < 200; ++i) {
    const RenderReport report = engine.render(requests[static_cast<size_t>(i) % 2]);
    EXPECT_LE(report.peak_bytes, first.peak_bytes);
  }
  engine.set_loras({});
  EXPECT_EQ(engine.info().used_bytes, used);
}

// --- failures ---

TEST_F(EngineTest, WrongRequestsNameTheirField) {
  Engine engine(options_);
  const auto field = [&](const auto& change) -> std::string {
    PictureRequest request = picture_of("a cat");
    change(request);
    try {
      engine.render(request);
    } catch (const InvalidRequest& error) {
      return error.field();
    }
    return "none";
  };
  EXPECT_EQ(field([](auto& r) { r.size = {15, 16}; }), "size");
  EXPECT_EQ(field([](auto& r) { r.preset = "fast"; }), "preset");
  EXPECT_EQ(field([](auto& r) { r.steps = 5000; }), "steps");
  EXPECT_EQ(field([](auto& r) { r.guidance = {NAN}; }), "guidance");
  EXPECT_EQ(field([](auto& r) { r.caption = "{"; }), "caption");
  EXPECT_EQ(field([](auto& r) { r.negative = "grey"; }), "negative");
  EXPECT_FALSE(pixels(engine, picture_of("a cat")).empty()) << "the engine is as it was";
}

TEST_F(EngineTest, TakesPresetsAndSizeFromTheModelsFolder) {
  const std::string model = folder_.file("model");
  fs::copy(golden_path("model"), model, fs::copy_options::recursive);
  const auto write = [&](const std::string& size) {
    folder_.write("model/octet_presets.json",
                  R"({"presets":[{"name":"brief","steps":2,"guidance":3,"mu":0.5,"std":1.2},
                      {"name":"turbo","steps":3,"guidance":2,"mu":0,"std":1}],"size":)" +
                      size + "}");
  };
  write("[24,16]");
  options_.model = model;
  Engine engine(options_);
  EXPECT_EQ(engine.info().size, (PictureSize{24, 16}));
  ASSERT_EQ(engine.info().presets.size(), 2u);
  EXPECT_EQ(engine.info().presets.front().name, "brief");
  PictureRequest request;
  request.caption = caption_of("a cat");
  std::map<std::string, std::string> metadata;
  const RenderReport report = engine.render(request, {.picture = [&](const Picture& picture) {
                                              for (const auto& each : picture.metadata) {
                                                metadata.insert(each);
                                              }
                                            }});
  EXPECT_EQ((PictureSize{report.width, report.height}), (PictureSize{24, 16}));
  EXPECT_EQ(report.preset, "brief");
  EXPECT_EQ(report.steps, 2);
  EXPECT_EQ(metadata["preset"], "brief");
  EXPECT_EQ(pixels(engine, request), alone(request, options_));
  request.preset = "turbo";
  request.size = {16, 16};
  EXPECT_EQ(engine.render(request).steps, 3);
  request.preset = "quality";
  EXPECT_ERROR_WITH(engine.check(request), "expected brief or turbo");
  EXPECT_ERROR_WITH(alone(request, options_), "expected brief or turbo");
  // Of the base, where the model is a file or a folder without one.
  options_.model = model + "/transformer";
  options_.base = model;
  EXPECT_EQ(Engine(options_).info().presets.front().name, "brief");
  write("[26,16]");
  EXPECT_ERROR_WITH(Engine{options_},
                    "octet_presets.json: size is 26 x 16, expected multiples of 4");
  write("[26,16");
  EXPECT_ERROR_WITH(Engine{options_}, "octet_presets.json: ");
}

TEST_F(EngineTest, AFailedLoadCanBeTriedAgain) {
  Engine engine;
  EXPECT_FALSE(engine.is_loaded());
  EXPECT_ERROR_WITH(engine.render(picture_of("a cat")), "load()");
  ModelOptions bad = options_;
  bad.model = folder_.file("nowhere");
  EXPECT_THROW(engine.load(bad), Error);
  EXPECT_FALSE(engine.is_loaded());
  // A file that ends too early, in the middle of loading.
  fs::copy(golden_path("model"), folder_.file("model"), fs::copy_options::recursive);
  ModelOptions copied = options_;
  copied.model = folder_.file("model");
  const fs::path file = fs::path(copied.model) / "transformer/diffusion_pytorch_model.safetensors";
  const auto whole = fs::file_size(file);
  EXPECT_THROW(engine.load(copied,
                           [&](const RenderProgress&) {
                             fs::resize_file(file, whole / 2);
                             return true;
                           }),
               Error);
  EXPECT_FALSE(engine.is_loaded());
  // Somebody who does not want to wait.
  EXPECT_THROW(engine.load(options_, [](const RenderProgress&) { return false; }), Cancelled);
  EXPECT_FALSE(engine.is_loaded());
  engine.load(options_);
  EXPECT_TRUE(engine.is_loaded());
  EXPECT_EQ(pixels(engine, picture_of("a cat")), alone(picture_of("a cat"), options_));
  engine.unload();
  EXPECT_FALSE(engine.is_loaded());
}

// --- residency ---

TEST_F(EngineTest, EveryPlaceGivesTheSamePicture) {
  const PictureRequest request = picture_of("a cat");
  Engine first(options_);
  const auto expected = pixels(first, request);
  const std::string checkpoint = first.render(request).checkpoint;
  for (const Residency where : {Residency::device, Residency::host, Residency::streamed}) {
    ModelOptions options = options_;
    options.keep = {{.part = "", .where = where}};
    Engine engine(options);
    EXPECT_EQ(pixels(engine, request), expected);
    EXPECT_EQ(pixels(engine, request), expected) << "the second time";
    EXPECT_EQ(engine.render(request).checkpoint, checkpoint);
  }
  ModelOptions options = options_;
  options.keep = {{.part = "vea", .where = Residency::host}};
  EXPECT_ERROR_WITH(Engine{options}, "expected one of text_encoder");
}

TEST_F(EngineTest, SaysWhereItsPartsAre) {
  options_.keep = {{.part = "", .where = Residency::device},
                   {.part = "text_encoder", .where = Residency::streamed}};
  Engine engine(options_);
  const EngineInfo info = engine.info();
  EXPECT_EQ(info.family, "ideogram4");
  ASSERT_EQ(info.plan.size(), 4u);
  EXPECT_EQ(info.plan[0].part, "text_encoder");
  EXPECT_EQ(info.plan[0].where, Residency::streamed);
  EXPECT_EQ(info.plan[3].where, Residency::device);
  EXPECT_TRUE(contains(plan_text(info), "unconditional_transformer"));
}

}  // namespace
}  // namespace octet::test
