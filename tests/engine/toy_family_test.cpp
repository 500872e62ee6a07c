// A family that lives in the tests goes through everything that the library does with a model.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "engine/toy_fixture.h"
#include "octet/generate.h"
#include "octet/inspect.h"
#include "octet/model_options.h"
#include "octet/tools/bench_e2e.h"
#include "octet/tools/bench_step.h"
#include "octet/tools/shapes.h"
#include "weights/written_tensors.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

class ToyLora : public ToyFamily {
 protected:
  // [rows, k] of rank 1, for a module of the first block.
  static std::string write_lora(const std::string& name, const std::string& module, int64_t rows,
                                int64_t k) {
    const std::string path = folder_->file(name);
    const std::vector<float> down(static_cast<size_t>(k), 0.3f), up(static_cast<size_t>(rows), 1);
    write_tensors(path, {written(module + ".lora_A.weight", {1, k}, down),
                         written(module + ".lora_B.weight", {rows, 1}, up)});
    return path;
  }
};

// --- pictures ---

TEST_F(ToyFamily, AllBackendsGiveTheSamePicture) {
  for (const Activations activations : {Activations::bf16, Activations::f32}) {
    ModelOptions cpu = options();
    cpu.activations = activations;
    ModelOptions ref = cpu;
    ref.device = "ref";
    const Rendered made = render(cpu);
    EXPECT_GT(cosine(made.latent, render(ref).latent),
              activations == Activations::bf16 ? kSameInBf16 : kSameInF32);
    ModelOptions threads = cpu;
    threads.threads = 2;
    EXPECT_TRUE(same(made, render(threads)));
    EXPECT_EQ(made.report.linears.int8, kLinears * kBlocks);
    EXPECT_EQ(made.report.linears.kept, kKept);
    EXPECT_EQ(made.report.steps, 3);
    EXPECT_EQ(made.report.text_tokens, 11);
  }
}

TEST_F(ToyFamily, PicturesHaveTheAskedSize) {
  Engine engine(options());
  EXPECT_EQ(engine.info().family, "toy");
  EXPECT_EQ(engine.info().networks, std::vector<std::string>{"denoiser"});
  EXPECT_EQ(engine.info().token_side, ToyShape::kTokenSide);
  for (const PictureSize size : {PictureSize{16, 12}, PictureSize{8, 24}}) {
    PictureRequest asked = request();
    asked.size = size;
    asked.images = 2;
    const Rendered made = render(engine, asked);
    ASSERT_EQ(made.pictures.size(), 2u);
    for (const Picture& picture : made.pictures) {
      EXPECT_EQ((PictureSize{picture.width, picture.height}), size);
      EXPECT_EQ(std::ssize(picture.rgb), 3 * size.width * size.height);
      EXPECT_GT(std::set<uint8_t>(picture.rgb.begin(), picture.rgb.end()).size(), 10u);
    }
    EXPECT_NE(made.pictures[0].rgb, made.pictures[1].rgb);
  }
  EXPECT_FALSE(same(render(engine), render(engine, request("a blue house"))));
}

// A program may have made any number into one.
TEST_F(ToyFamily, UnknownEnumeratorsAreNamed) {
  const auto field_of = [](auto ModelOptions::*member) {
    ModelOptions wrong = options();
    wrong.*member = static_cast<std::decay_t<decltype(wrong.*member)>>(99);
    return wrong_field([&] { Engine engine(wrong); });
  };
  EXPECT_EQ(field_of(&ModelOptions::activations), "activations");
  EXPECT_EQ(field_of(&ModelOptions::linears), "linears");
  EXPECT_EQ(field_of(&ModelOptions::attention), "attention");
  EXPECT_EQ(field_of(&ModelOptions::text_encoder_linears), "text_encoder_linears");
  EXPECT_EQ(field_of(&ModelOptions::tuning), "tuning");
  EXPECT_EQ(field_of(&ModelOptions::convention), "convention");
  ModelOptions wrong = options();
  wrong.keep = {{.part = "", .where = static_cast<Residency>(99)}};
  EXPECT_EQ(wrong_field([&] { Engine engine(wrong); }), "keep");
}

// Converted weights that cannot be read to their end are made again, in the same call.
TEST_F(ToyFamily, ConvertedWeightsThatBreakOffAreMadeAgain) {
  ModelOptions kept = options();
  kept.cache_weights = true;
  const Rendered made = render(kept);
  fs::path file;
  for (const auto& entry : fs::directory_iterator(folder_->file("OCTET_CACHE_DIR/converted"))) {
    file = entry.path();
  }
  const auto size = fs::file_size(file);
  size_t calls = 1;
  for (size_t cut_at = 0; cut_at < calls; ++cut_at) {
    Engine engine;
    calls = 0;
    engine.load(kept, [&](const RenderProgress&) {
      if (calls++ == cut_at) fs::resize_file(file, size / 2);
      return true;
    });
    EXPECT_TRUE(same(render(engine), made)) << cut_at;
  }
  EXPECT_GT(calls, 2u);
}

TEST_F(ToyFamily, GenerateFindsItByPathAndByName) {
  const std::string commit(40, 'a');
  const fs::path repo = fs::path(folder_->file("HF_HUB_CACHE")) / "models--some--toy";
  fs::create_directories(repo / "snapshots");
  fs::create_directories(repo / "refs");
  fs::create_directory_symlink(model_, repo / "snapshots" / commit);
  std::ofstream(repo / "refs/main") << commit;
  const Rendered expected = render(options());
  for (const std::string& name : {model_, std::string("some/toy")}) {
    Rendered made;
    generate({options(name), request()}, into(made));
    EXPECT_TRUE(same(made, expected)) << name;
  }
}

TEST_F(ToyFamily, WrongRequestsNameTheirField) {
  Engine engine(options());
  const auto field = [&](const auto& change) {
    PictureRequest asked = request();
    change(asked);
    const std::string of_engine = wrong_field([&] { engine.check(asked); });
    EXPECT_EQ(of_engine, wrong_field([&] {
                Rendered ignored;
                generate({options(), asked}, into(ignored));
              }));
    return of_engine;
  };
  EXPECT_EQ(field([](PictureRequest& asked) { asked.size = {18, 12}; }), "size");
  EXPECT_EQ(field([](PictureRequest& asked) { asked.guidance = {3}; }), "guidance");
  EXPECT_EQ(field([](PictureRequest& asked) { asked.caption = ""; }), "caption");
  EXPECT_EQ(field([](PictureRequest& asked) { asked.preset = "turbo"; }), "preset");
  EXPECT_EQ(field([](PictureRequest& asked) { asked.steps = -1; }), "steps");
  EXPECT_EQ(field([](PictureRequest&) {}), "nothing");
  PictureRequest any = request("");
  any.any_caption = true;
  EXPECT_TRUE(same(render(engine, any), render(engine, request(" "))));
}

TEST_F(ToyFamily, WrongModelsNameWhatIsMissing) {
  EXPECT_ERROR_WITH(Engine(options(model_ + "/denoiser")), "there is no byte_encoder");
  ModelOptions wrong = options();
  wrong.keep = {{"transformer", Residency::device}};
  EXPECT_ERROR_WITH(Engine(wrong), "byte_encoder, denoiser, pixel_decoder");
  wrong = options();
  wrong.parts["pixel_decoder"] = model_ + "/byte_encoder";
  const std::string message = error_of([&] { Engine engine(wrong); });
  EXPECT_TRUE(contains(message, "pixels")) << message;
  EXPECT_FALSE(contains(message, "Ideogram")) << message;
}

TEST_F(ToyFamily, OddSizesAreWarnedOfInItsName) {
  Engine engine(options());
  PictureRequest asked = request();
  asked.size = {4, 8};
  std::vector<Sentence> told;
  RenderCallbacks callbacks;
  callbacks.warning = [&](const Sentence& sentence) { told.push_back(sentence); };
  const Job job = engine.check(asked);
  ASSERT_EQ(job.warnings().size(), 1u);
  EXPECT_TRUE(contains(job.warnings()[0], "4x8 is smaller than what Toy is documented for"));
  EXPECT_EQ(engine.render(job, callbacks).warnings, job.warnings());
  EXPECT_EQ(told, job.warnings());
}

TEST_F(ToyFamily, PlacesOfItsPartsDoNotShow) {
  const Rendered expected = render(options());
  for (const Residency where : {Residency::device, Residency::host, Residency::streamed}) {
    for (const char* part : {"denoiser", ""}) {
      ModelOptions placed = options();
      placed.keep = {{part, where}};
      EXPECT_TRUE(same(render(placed), expected)) << part;
    }
  }
}

// --- LoRAs ---

TEST_F(ToyLora, LorasChangeItsPictures) {
  const Lora tell = parse_lora(write_lora("tell.safetensors", "stack.0.tell", 48, 48));
  // One of three modules that are one linear, and the network in the name.
  const Lora key =
      parse_lora(write_lora("key.safetensors", "denoiser.stack.1.key", 48, 48) + ":0.5:denoiser");
  EXPECT_EQ(key.networks, std::vector<std::string>{"denoiser"});
  const Rendered plain = render(options());
  ModelOptions with_loras = options();
  with_loras.loras = {tell, key};
  const Rendered changed = render(with_loras);
  EXPECT_FALSE(same(changed, plain));

  ModelOptions without_strength = options();
  without_strength.loras = {tell};
  without_strength.loras.front().strength = 0;
  EXPECT_TRUE(same(render(without_strength), plain));

  Engine engine(options());
  engine.set_loras({tell, key});
  EXPECT_TRUE(same(render(engine), changed));
  engine.set_loras({});
  EXPECT_TRUE(same(render(engine), plain));
}

TEST_F(ToyLora, WrongLorasAreRefused) {
  ModelOptions wrong = options();
  wrong.loras = {{.file = write_lora("other.safetensors", "layers.0.attention.qkv", 48, 48)}};
  EXPECT_ERROR_WITH(Engine(wrong), "is not a linear of the model");
  wrong.loras = {{.file = write_lora("good.safetensors", "stack.0.tell", 48, 48)}};
  wrong.loras.front().networks = {"unconditional"};
  EXPECT_EQ(wrong_field([&] { Engine engine(wrong); }), "loras");
  EXPECT_ERROR_WITH(parse_lora("a.safetensors:every"), "|denoiser|both");
}

// --- the rest ---

TEST_F(ToyFamily, ItsPartsAreInspected) {
  const ModelSummary summary = inspect_model(model_);
  ASSERT_EQ(summary.parts.size(), 3u);
  EXPECT_EQ(summary.parts[0].part, "denoiser");
  EXPECT_EQ(summary.parts[1].part, "byte_encoder");
  EXPECT_EQ(summary.parts[2].part, "pixel_decoder");
  int converted = 0;
  for (const StoredLinear& linear : summary.parts[0].linears) {
    converted += linear.runs == "int8 on load" ? 1 : 0;
  }
  EXPECT_EQ(converted, (kModules + 2) * kBlocks);  // query, key and value are stored apart
  const ModelSummary lone = inspect_model(model_ + "/byte_encoder");
  ASSERT_EQ(lone.parts.size(), 1u);
  EXPECT_EQ(lone.parts.front().part, "byte_encoder");
}

TEST_F(ToyFamily, ItIsMeasuredUnderItsName) {
  ASSERT_EQ(list_presets("toy").size(), 1u);
  EXPECT_EQ(list_presets("toy").front().steps, 3);
  const auto shapes = parse_shapes("toy@16");
  ASSERT_EQ(shapes.size(), size_t{kLinears});
  const auto with_text = parse_shapes("toy@16,16+7");
  ASSERT_EQ(with_text.size(), size_t{2 * kLinears});
  EXPECT_EQ(with_text.front().m, 16);
  EXPECT_EQ(with_text.back().m, 16 + 7);
  for (const char* wrong : {"toy@16+", "toy@16+0", "toy@16+7+7", "toy@+7", "toy@16+99999999"}) {
    EXPECT_THROW(parse_shapes(wrong), Error) << wrong;
  }
  EXPECT_EQ(shapes.front().m, 16);
  EXPECT_EQ(shapes.front().n, 3 * ToyShape::kHidden);
  StepBenchRequest asked;
  asked.family = "toy";
  asked.width = 20;
  asked.height = 12;
  asked.text_tokens = 7;
  asked.device = "cpu";
  asked.threads = 1;
  asked.steps = 1;
  asked.tuning = Tuning::off;
  asked.layers = 1;
  const StepBench bench = bench_step(asked);
  ASSERT_EQ(bench.branches.size(), 1u);
  EXPECT_EQ(bench.branches.front().name, "only");
  EXPECT_EQ(bench.branches.front().tokens, 5 * 3 + 7);
}

TEST_F(ToyFamily, WholePicturesAreMeasured) {
  E2eBenchRequest asked;
  asked.family = "toy";
  asked.size = {20, 12};
  asked.text_tokens = 7;
  asked.layers = 1;
  asked.steps = 2;
  asked.pictures = 3;
  asked.device = "cpu";
  asked.threads = 1;
  asked.tuning = Tuning::off;
  std::map<std::string, std::pair<int, int>> phases;
  const auto progress = [&](const std::string& phase, int done, int total) {
    phases[phase] = {done, total};
  };
  const E2eBench random = bench_e2e(asked, progress);
  EXPECT_EQ(random.text_tokens, 7);
  EXPECT_EQ(phases["pictures"], std::pair(4, 4));
  const fs::path captioned = folder_->file("captioned");
  fs::copy(model_, captioned, fs::copy_options::recursive);
  fs::create_directories(captioned / "captions");
  std::ofstream(captioned / "captions" / "a.txt") << "hello";
  asked.model = captioned.string();
  const E2eBench stored = bench_e2e(asked, progress);
  EXPECT_EQ(stored.text_tokens, 5);
  for (const E2eBench* bench : {&random, &stored}) {
    EXPECT_EQ(bench->size, asked.size);
    EXPECT_EQ(bench->steps, 2);
    ASSERT_EQ(bench->pictures.size(), 3u);
    for (const E2eTimes& picture : bench->pictures) {
      EXPECT_GT(picture.text_s, 0) << "each encodes its caption";
      EXPECT_GE(picture.whole_s,
                picture.text_s + picture.prepare_s + picture.denoise_s + picture.decode_s);
    }
    EXPECT_GT(bench->median.whole_s, 0);
    EXPECT_DOUBLE_EQ(bench->ms_per_step(), 500 * bench->median.denoise_s);
    EXPECT_GT(bench->peak_bytes, 0u);
    EXPECT_FALSE(bench->power.is_known());
    EXPECT_EQ(bench->joules_per_picture(), 0);
  }
  asked.pictures = 0;
  EXPECT_ERROR_WITH(bench_e2e(asked), "0 pictures, expected 1 to 100");
}

}  // namespace
}  // namespace octet::test
