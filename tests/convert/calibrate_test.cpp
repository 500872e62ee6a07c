// The statistics of a calibration against a tap that keeps everything, with and without room for
// the blocks.
#include "convert/calibrate.h"

#include "base/error.h"
#include "convert/calibrating.h"
#include "engine/noise.h"
#include "engine/sampler.h"
#include "formats/error_message.h"
#include "weights/loader.h"

namespace octet::test {
namespace {

using convert::CalibrateRequest;
using quant::ActivationStatistics;

// All rows that each linear saw.
class KeepAll : public nn::InputTap {
 public:
  explicit KeepAll(nn::Context ctx) : ctx_(ctx) {}

  void input(const nn::Linear& w, const ConstTensorView& x) override {
    std::vector<float> values(static_cast<size_t>(x.shape.elements()));
    download_matrix(ctx_, x, values.data());
    quant::LinearInputs& inputs = seen[branch + "." + w.name];
    inputs.k = w.k;
    inputs.rows_seen += static_cast<uint64_t>(x.shape[0]);
    inputs.rows.insert(inputs.rows.end(), values.begin(), values.end());
    ++calls[branch + "." + w.name];
  }

  std::string branch;
  ActivationStatistics seen;
  std::map<std::string, int> calls;

 private:
  nn::Context ctx_;
};

// The same work with other means: all parts in memory, whole schedules.
void run_watched(const CalibrateRequest& request, DType dtype, KeepAll& tap, Backend& backend) {
  nn::Context ctx{backend, dtype};
  nn::Context watched{backend, dtype, nullptr, &tap};
  const models::Model model = request.family->open(request.files, {request.convention});
  const auto load = [&](models::Part& part) {
    weights::Loader loader(part.source(), backend, {.dtype = dtype, .int8 = false});
    part.visit_all(loader);
  };
  load(*model.text_encoder);
  for (const auto& network : model.networks) load(*network);
  auto schedule = request.schedule;
  schedule.size = request.size;
  schedule.convention = request.convention;
  const models::Grid grid{4, 5};
  const models::Schedule steps = request.family->make_schedule(schedule);
  for (size_t i = 0; i < request.captions.size(); ++i) {
    const auto features = model.text_encoder->encode(ctx, model.tokenize(request.captions[i]), {});
    tap.branch = "conditional";
    const auto prompt = model.networks[0]->prepare(watched, features, grid);
    const auto no_prompt = model.networks[1]->prepare(watched, {}, grid);
    const auto velocity = [&](const ConstTensorView& z, int step, size_t network,
                              const TensorView& out) {
      tap.branch = request.family->networks[network].name;
      const models::Network& runs = *model.networks[network];
      const auto& conditioning = network == 0 ? *prompt : *no_prompt;
      const float time = steps.times[static_cast<size_t>(step)];
      runs.velocity_at(watched, conditioning, z, time, out);
    };
    const int64_t channels = model.networks[0]->latent_channels();
    const auto noise =
        engine::make_noise(request.seed, i, static_cast<size_t>(grid.tokens() * channels));
    engine::Sampler(ctx, steps, request.family->branches, grid.tokens(), channels)
        .run(noise, engine::one_by_one(velocity));
  }
}

// How many of `rows` stand in `all`, in this order.
size_t found_in_order(const quant::LinearInputs& some, const quant::LinearInputs& all) {
  const auto k = some.k;
  size_t found = 0;
  auto at = all.rows.begin();
  for (auto row = some.rows.begin(); row != some.rows.end(); row += k) {
    while (at != all.rows.end() && !std::equal(row, row + k, at)) at += k;
    if (at == all.rows.end()) break;
    at += k;
    ++found;
  }
  return found;
}

class CalibratedIn : public Calibrating, public testing::WithParamInterface<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, CalibratedIn, testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST_P(CalibratedIn, IsWhatATapSees) {
  const CalibrateRequest request = small_calibration();
  const ActivationStatistics statistics = calibrate(request, GetParam());
  const auto backend = make_cpu_backend({.threads = 1});
  KeepAll tap(nn::Context{*backend, GetParam()});
  run_watched(request, GetParam(), tap, *backend);

  ASSERT_EQ(statistics.size(), tap.seen.size());
  for (const auto& [name, all] : tap.seen) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(statistics.contains(name));
    const quant::LinearInputs& inputs = statistics.at(name);
    EXPECT_EQ(inputs.k, all.k);
    EXPECT_EQ(inputs.rows_seen, all.rows_seen);
    EXPECT_EQ(inputs.amax, quant::column_amax(all.rows, all.k));
    // Seven rows, or all where a linear sees one in each of fewer turns.
    EXPECT_EQ(inputs.row_count(),
              std::min<int64_t>(request.rows, static_cast<int64_t>(all.rows_seen)));
    EXPECT_EQ(found_in_order(inputs, all), static_cast<size_t>(inputs.row_count()));
  }
  // Two captions of three steps, two of which are guided.
  for (const auto& [name, calls] : tap.calls) {
    const bool is_text = name == "conditional.llm_cond_proj";
    EXPECT_EQ(calls, is_text ? 2 : name.starts_with("conditional.") ? 6 : 4) << name;
  }
}

TEST_F(Calibrating, KnowsEveryLinear) {
  const ActivationStatistics statistics = calibrate(small_calibration());
  std::set<std::string> names;
  for (const std::string branch : {"conditional.", "unconditional."}) {
    for (const char* name : {"input_proj", "t_embedding.mlp_in", "t_embedding.mlp_out",
                             "adaln_proj", "final_layer.adaln_modulation", "final_layer.linear"}) {
      names.insert(branch + name);
    }
    for (const std::string block : {"layers.0.", "layers.1."}) {
      for (const char* name : {"adaln_modulation", "attention.qkv", "attention.o",
                               "feed_forward.w1", "feed_forward.w2"}) {
        names.insert(branch + block + name);
      }
    }
  }
  names.insert("conditional.llm_cond_proj");
  std::set<std::string> got;
  for (const auto& [name, inputs] : statistics) got.insert(name);
  EXPECT_EQ(got, names);
}

TEST_F(Calibrating, StreamedBlocksGiveTheSame) {
  CalibrateRequest request = small_calibration();
  const ActivationStatistics resident = calibrate(request);
  const size_t peak_resident = peak_;
  const auto memory = convert::memory_for(request, DType::f32);
  ASSERT_LT(memory.least, memory.most);
  request.max_memory = memory.most;
  calibrate(request);
  EXPECT_EQ(peak_, peak_resident);

  const uint64_t block = (memory.most - memory.least) / 3;  // of two transformers with two each
  size_t before = peak_resident;
  for (const uint64_t bound : {memory.least + block, memory.least}) {
    request.max_memory = bound;
    expect_same(calibrate(request), resident);
    EXPECT_LE(peak_ + block, before) << bound;
    before = peak_;
  }
  request.max_memory = memory.least - 1;
  EXPECT_ERROR_WITH(calibrate(request), std::to_string(memory.least));
}

TEST_F(Calibrating, OneBranchAlone) {
  CalibrateRequest request = small_calibration();
  request.files.erase("unconditional_transformer");
  const ActivationStatistics statistics = calibrate(request);
  EXPECT_EQ(statistics.size(), 17u);
  for (const auto& [name, inputs] : statistics) EXPECT_TRUE(name.starts_with("conditional."));
}

TEST_F(Calibrating, ThreadsDoNotShow) {
  const CalibrateRequest request = small_calibration();
  const auto backend = make_cpu_backend({.threads = 3});
  nn::Context ctx{*backend, DType::f32};
  expect_same(convert::calibrate(ctx, request), calibrate(request));
}

TEST_F(Calibrating, TellsHowFarItIs) {
  std::vector<int64_t> steps;
  int64_t layers = 0, blocks = 0;
  calibrate(small_calibration(), DType::f32, [&](const RenderProgress& progress) {
    if (progress.stage == Stage::denoise) {
      EXPECT_EQ(progress.total, 6);
      steps.push_back(progress.done);
    }
    if (progress.stage == Stage::text) ++layers;
    if (progress.stage == Stage::load) {
      EXPECT_EQ(progress.total, 4);
      EXPECT_EQ(progress.done, ++blocks);
    }
    return true;
  });
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(layers, 2 * 36) << "of both captions";
  EXPECT_EQ(blocks, 4);
}

TEST_F(Calibrating, RefusesWhatMakesNoSense) {
  const auto refusal = [&](auto change) {
    CalibrateRequest request = small_calibration();
    change(request);
    return error_of([&] { calibrate(request); });
  };
  const auto expect = [&](const char* part, auto change) {
    const std::string message = refusal(change);
    EXPECT_TRUE(contains(message, part)) << message;
  };
  expect("there are no captions", [](auto& request) { request.captions.clear(); });
  expect("0 rows of each linear", [](auto& request) { request.rows = 0; });
  expect("image size", [](auto& request) { request.size = {33, 32}; });
  expect("no step is guided", [](auto& request) { request.schedule.guidance = {1}; });
  expect("1001 steps", [](auto& request) {
    request.schedule.guidance = {};
    request.schedule.steps = 1001;
  });
  expect("2048", [](auto& request) { request.captions[1] = std::string(5000, 'x'); });
  expect("/nowhere/state", [](auto& request) { request.state_path = "/nowhere/state"; });
  expect("/nowhere: cannot be opened",
         [](auto& request) { request.files["transformer"] = {"/nowhere"}; });
}

TEST_F(Calibrating, Int8LinearsCannotBeWatched) {
  const CalibrateRequest request = small_calibration();
  const auto backend = make_cpu_backend({.threads = 1});
  KeepAll tap(nn::Context{*backend, DType::f32});
  nn::Context ctx{*backend, DType::f32, nullptr, &tap};
  const auto network =
      request.family->open_network(1, request.files.at("unconditional_transformer"));
  weights::Loader loader(network->source(), *backend, {.dtype = DType::f32});
  network->visit_all(loader);
  const auto prompt = network->prepare(ctx, {}, {4, 5});
  const nn::Matrix z = ctx.matrix(20, network->latent_channels());
  EXPECT_ERROR_WITH(network->velocity_at(ctx, *prompt, z, 0.5f, z), "must not be quantized");
}

}  // namespace
}  // namespace octet::test
