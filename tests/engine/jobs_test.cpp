// What a server needs of an engine: jobs that are checked while a picture is made, calls that end
// on request, and what is known without waiting.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "engine/toy_fixture.h"
#include "octet/error.h"
#include "octet/generate.h"
#include "octet/model_options.h"
#include "weights/written_tensors.h"

namespace octet::test {
namespace {

// A render that waits inside a callback until it is let go.
class BlockedRender {
 public:
  BlockedRender(Engine& engine, const PictureRequest& request)
      : thread_([this, &engine, request] {
          try {
            engine.render(request, {.progress = [this](const RenderProgress& progress) {
                            if (progress.stage != Stage::denoise) return true;
                            inside_ = true;
                            while (!free_)
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            return true;
                          }});
          } catch (const Cancelled&) {
            cancelled_ = true;
          }
        }) {
    while (!inside_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~BlockedRender() { end(); }
  void let_go() { free_ = true; }
  void end() {
    let_go();
    if (thread_.joinable()) thread_.join();
  }
  bool was_cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> inside_{false}, free_{false}, cancelled_{false};
  std::thread thread_;
};

class Jobs : public ToyFamily {
 protected:
  static std::string write_lora(const std::string& name, const std::string& module) {
    const std::string path = folder_->file(name);
    const std::vector<float> ones(48, 0.3f);
    write_tensors(path, {written(module + ".lora_A.weight", {1, 48}, ones),
                         written(module + ".lora_B.weight", {48, 1}, ones)});
    return path;
  }
};

TEST_F(Jobs, SayWhatWillBeRendered) {
  Engine engine(options());
  EXPECT_FALSE(Job());
  PictureRequest asked = request();
  asked.steps = 5;
  const Job job = engine.check(asked);
  EXPECT_TRUE(bool(job));
  EXPECT_EQ(job.size(), (PictureSize{16, 12}));
  EXPECT_EQ(job.latents(), (LatentShape{12, ToyShape::kLatent, 5}));
  EXPECT_EQ(job.steps(), 5);
  EXPECT_EQ(job.text_tokens(), 11);
  EXPECT_EQ(job.branches(), std::vector<std::string>{"only"});
  EXPECT_TRUE(job.warnings().empty());
  EXPECT_EQ(job.request().caption, asked.caption);
  Rendered once, again;
  once.report = engine.render(job, into(once));
  again.report = engine.render(job, into(again));
  EXPECT_TRUE(same(once, again) && same(once, render(options(), asked)));
  EXPECT_ERROR_WITH(engine.render(Job()), "the job is empty");
}

TEST_F(Jobs, AreCheckedWhileAPictureIsMade) {
  Engine engine(options());
  BlockedRender render(engine, request());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(engine.check(request("a blue house")).text_tokens(), 12);
  EXPECT_EQ(wrong_field([&] { engine.check(request("")); }), "caption");
  EXPECT_LT(engine.estimate(engine.check(request())).seconds, 0) << "nothing was made yet";
  const EngineState state = engine.state();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
  EXPECT_TRUE(state.loaded && state.busy);
  EXPECT_EQ(state.progress.stage, Stage::denoise);
  EXPECT_EQ(state.progress.total, 3);
  EXPECT_GT(state.used_bytes, 0u);
  EXPECT_GE(state.peak_bytes, state.used_bytes);
  EXPECT_GT(state.free_bytes, 0u);
  EXPECT_EQ(state.joules, 0) << "unknown on a CPU";
  render.end();
  EXPECT_FALSE(engine.state().busy);
}

TEST_F(Jobs, OfAnotherModelOrAnEarlierLoadAreRefused) {
  Engine engine(options()), other(options());
  const Job job = engine.check(request());
  EXPECT_ERROR_WITH(other.render(job), "check the request again");
  engine.render(job);
  engine.load(options());
  EXPECT_ERROR_WITH(engine.render(job), "before this one was loaded");
  engine.unload();
  EXPECT_ERROR_WITH(engine.render(job), "no model is loaded");
  EXPECT_ERROR_WITH(engine.check(request()), "no model is loaded");
  EXPECT_FALSE(engine.state().loaded);
}

TEST_F(Jobs, EndOnAStopThatCameBefore) {
  Engine engine(options());
  std::stop_source source;
  PictureRequest asked = request();
  asked.stop = source.get_token();
  const Job job = engine.check(asked);
  engine.render(job);
  source.request_stop();
  int told = 0;
  const RenderCallbacks watch{.progress = [&](const RenderProgress&) { return ++told > 0; }};
  EXPECT_THROW(engine.render(job, watch), Cancelled);
  EXPECT_THROW(engine.render(asked, watch), Cancelled);
  EXPECT_EQ(told, 0);
  Rendered ignored;
  EXPECT_THROW(generate({options(), asked}, into(ignored)), Cancelled);
  EXPECT_THROW(engine.load(options(), {}, false, source.get_token()), Cancelled);
  EXPECT_TRUE(engine.is_loaded()) << "a load that did not begin changes nothing";
  EXPECT_THROW(engine.warm_up({}, false, source.get_token()), Cancelled);
  EXPECT_FALSE(render(engine).pictures.empty()) << "others are not concerned";
}

TEST_F(Jobs, EndOnAStopInTheMiddleAndWhileTheyWait) {
  Engine engine(options());
  std::stop_source source;
  PictureRequest asked = request();
  asked.stop = source.get_token();
  int steps = 0;
  EXPECT_THROW(engine.render(asked, {.progress =
                                         [&](const RenderProgress& progress) {
                                           if (progress.stage != Stage::denoise) return true;
                                           steps = static_cast<int>(progress.done);
                                           if (steps == 1) source.request_stop();
                                           return true;
                                         }}),
               Cancelled);
  EXPECT_EQ(steps, 1);
  BlockedRender first(engine, request());
  std::stop_source second_stop;
  PictureRequest second = request();
  second.stop = second_stop.get_token();
  std::atomic<bool> ended{false};
  std::thread waiting([&] {
    EXPECT_THROW(engine.render(second), Cancelled);
    ended = true;
  });
  second_stop.request_stop();
  waiting.join();
  EXPECT_TRUE(ended) << "while the first still runs";
}

TEST_F(Jobs, AreEndedAndWaitedForByTheEnginesEnd) {
  auto engine = std::make_unique<Engine>(options());
  BlockedRender render(*engine, request());
  std::thread letting_go([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    render.let_go();
  });
  engine.reset();
  render.end();
  letting_go.join();
  EXPECT_TRUE(render.was_cancelled());
}

TEST_F(Jobs, AreEstimatedFromWhatWasMade) {
  Engine engine(options());
  const Job job = engine.check(request());
  EXPECT_LT(engine.estimate(job).seconds, 0);
  engine.render(job);
  const Estimate small = engine.estimate(job);
  EXPECT_GT(small.seconds, 0);
  EXPECT_GT(small.device_bytes, 0u);
  PictureRequest more = request();
  more.images = 4;
  more.size = {64, 48};
  const Estimate large = engine.estimate(engine.check(more));
  EXPECT_GT(large.seconds, small.seconds);
  EXPECT_GT(large.device_bytes, small.device_bytes);
  ModelOptions placed = options();
  placed.device = "ref";
  placed.keep = {{"", Residency::streamed}};
  const Engine streaming(placed);
  EXPECT_LT(streaming.estimate(streaming.check(request())).device_bytes, small.device_bytes);
}

TEST_F(Jobs, WarmUpDoesWhatAFirstPictureWaitsFor) {
  Engine engine;
  engine.load(options(), {}, /*lazy=*/true);
  engine.warm_up({16, 12}, /*previews=*/true);
  int loads = 0, previews = 0;
  Rendered made;
  RenderCallbacks callbacks = into(made);
  callbacks.progress = [&](const RenderProgress& progress) {
    loads += progress.stage == Stage::load ? 1 : 0;
    return true;
  };
  callbacks.preview = [&](const Preview&) { ++previews; };
  made.report = engine.render(request(), callbacks);
  EXPECT_EQ(loads, 0);
  EXPECT_EQ(previews, 3);
  EXPECT_TRUE(same(made, render(options())));
  EXPECT_EQ(wrong_field([&] { engine.warm_up({15, 12}); }), "size");
}

TEST_F(Jobs, ShowPreviewsAsOftenAsAsked) {
  Engine engine(options());
  PictureRequest asked = request();
  asked.steps = 7;
  std::vector<int> steps;
  engine.render(asked, {.preview = [&](const Preview& preview) { steps.push_back(preview.step); },
                        .preview_every = 3});
  EXPECT_EQ(steps, (std::vector{3, 6, 7}));
}

TEST_F(Jobs, TellOfTheImageThatIsDecoded) {
  Engine engine(options());
  std::vector<std::pair<int64_t, double>> told;
  engine.render(request(), {.progress = [&](const RenderProgress& progress) {
                  if (progress.stage == Stage::decode) {
                    told.emplace_back(progress.done, progress.fraction);
                  }
                  return true;
                }});
  EXPECT_EQ(told, (std::vector<std::pair<int64_t, double>>{{0, 0}, {0, 0.5}, {1, 0}}));
}

TEST_F(Jobs, ChooseTheirLoras) {
  const Lora tell = parse_lora(write_lora("job_tell.safetensors", "stack.0.tell"));
  const Lora other = parse_lora(write_lora("job_other.safetensors", "stack.1.tell"));
  ModelOptions with_tell = options(), with_both = options();
  with_tell.loras = {tell};
  with_both.loras = {tell, other};
  const Rendered plain = render(options()), changed = render(with_tell), both = render(with_both);
  Engine engine(options());
  PictureRequest asked = request();
  int64_t loaded = 0;
  const auto rendered = [&](std::optional<std::vector<Lora>> loras) {
    asked.loras = std::move(loras);
    Rendered made;
    RenderCallbacks callbacks = into(made);
    loaded = 0;
    callbacks.progress = [&](const RenderProgress& progress) {
      if (progress.stage == Stage::load) loaded = std::max(loaded, progress.total);
      return true;
    };
    made.report = engine.render(asked, callbacks);
    return made;
  };
  EXPECT_TRUE(same(rendered(std::nullopt), plain));
  EXPECT_TRUE(same(rendered(std::vector{tell}), changed));
  const int64_t one = loaded;
  EXPECT_GT(one, 0);
  const Rendered two = rendered(std::vector{tell, other});
  EXPECT_TRUE(same(two, both));
  EXPECT_EQ(loaded, one) << "only what the further one changes";
  EXPECT_EQ(two.report.checkpoint, both.report.checkpoint);
  const auto& metadata = two.pictures.front().metadata;
  EXPECT_TRUE(std::any_of(metadata.begin(), metadata.end(), [](const auto& entry) {
    return entry.first == "loras" && contains(entry.second, "job_other");
  }));
  EXPECT_TRUE(same(rendered(std::vector{tell, other}), both));
  EXPECT_EQ(loaded, 0) << "nothing is to be changed";
  EXPECT_TRUE(same(rendered(std::nullopt), plain)) << "the model's own are none";
  EXPECT_EQ(wrong_field([&] {
              Lora wrong = tell;
              wrong.networks = {"unconditional"};
              rendered(std::vector{wrong});
            }),
            "loras");
  EXPECT_TRUE(same(rendered(std::nullopt), plain));
}

TEST_F(Jobs, MissingMemoryHasATypeOfItsOwn) {
  const auto fails = [] { throw OutOfMemory("too large"); };
  EXPECT_THROW(fails(), Error);
  Engine engine(options());
  try {
    engine.render(request(),
                  {.progress = [](const RenderProgress&) -> bool { throw std::bad_alloc(); }});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_TRUE(contains(error.what(), "out of memory"));
  }
}

}  // namespace
}  // namespace octet::test
