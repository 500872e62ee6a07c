// octet::Engine while it ends, moves, loads and is cancelled: what other threads, callbacks and
// children of fork() may do meanwhile.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "formats/error_message.h"
#include "models/golden_run.h"
#include "octet/caption.h"
#include "octet/engine.h"
#include "octet/error.h"

namespace octet::test {
namespace {

class EngineLifetimeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
    options_.model = golden_path("model");
    options_.convention = Convention::diffusers;
    options_.device = "cpu";
    options_.threads = 2;
    request_.caption = wrap_plain_text("a cat");
    request_.size = {16, 16};
    request_.preset = "turbo";
    request_.steps = 3;
  }

  // What the call's Error says; "": none.
  template <class Call>
  static std::string outcome(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  // In a child, whose result it is.
  template <class Work>
  static int in_child(Work&& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(120);  // to hang is to fail
      ::_exit(work() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  ModelOptions options_;
  PictureRequest request_;
};

// --- the end ---

TEST_F(EngineLifetimeTest, EndsWhileOthersRenderAndAsk) {
  for (int round = 0; round < 8; ++round) {
    auto engine = std::make_unique<Engine>(options_);
    Engine& used = *engine;
    std::atomic<bool> quit{false};
    std::atomic<int> rendered{0}, asked{0};
    std::thread renders([&] {
      while (!quit) {
        outcome([&] { used.render(request_); });
        ++rendered;
      }
    });
    std::thread asks([&] {
      while (!quit) {
        outcome([&] { used.state(); });
        outcome([&] { used.info(); });
        outcome([&] { used.check(request_); });
        used.is_loaded();
        used.cancel();
        ++asked;
      }
    });
    while (asked < round || rendered < round / 4) std::this_thread::yield();
    engine.reset();
    // Both go on with an engine that is no more.
    const int before = asked, renders_before = rendered;
    while (asked < before + 2 || rendered < renders_before + 2) std::this_thread::yield();
    quit = true;
    renders.join();
    asks.join();
  }
}

TEST_F(EngineLifetimeTest, EndsInItsOwnCallback) {
  auto engine = std::make_unique<Engine>(options_);
  bool went_on = false;
  EXPECT_THROW(engine->render(request_, {.progress =
                                             [&](const RenderProgress& progress) {
                                               if (progress.stage == Stage::denoise) engine.reset();
                                               return true;
                                             },
                                         .picture = [&](const Picture&) { went_on = true; }}),
               Cancelled);
  EXPECT_EQ(engine, nullptr);
  EXPECT_FALSE(went_on);
}

TEST_F(EngineLifetimeTest, EndsWhileItLoads) {
  auto engine = std::make_unique<Engine>();
  std::atomic<bool> begun{false};
  std::thread loads([&, used = engine.get()] {
    EXPECT_THROW(used->load(options_,
                            [&](const RenderProgress&) {
                              begun = true;
                              while (outcome([&] { used->state(); }).empty()) {
                                std::this_thread::yield();
                              }
                              return true;
                            }),
                 Cancelled);
  });
  while (!begun) std::this_thread::yield();
  engine.reset();
  loads.join();
}

TEST_F(EngineLifetimeTest, AnEngineThatWasMovedFromIsEmpty) {
  Engine first(options_);
  const Engine second(std::move(first));
  EXPECT_TRUE(second.is_loaded());
  EXPECT_FALSE(first.is_loaded());
  EXPECT_FALSE(first.state().loaded);
  EXPECT_ERROR_WITH(first.render(request_), "load()");
  first.unload();
  first.cancel();
  first.load(options_);
  EXPECT_EQ(first.render(request_).steps, 3);
  first = Engine();
  EXPECT_FALSE(first.is_loaded());
}

TEST_F(EngineLifetimeTest, AnEngineThatWasDestroyedIsNone) {
  auto engine = std::make_unique<Engine>(options_);
  Engine* const destroyed = engine.get();
  engine.reset();
  EXPECT_ERROR_WITH(destroyed->load(options_), "no engine");
  EXPECT_ERROR_WITH(destroyed->unload(), "no engine");
  EXPECT_ERROR_WITH(destroyed->state(), "no engine");
  EXPECT_ERROR_WITH(destroyed->render(request_), "no engine");
  EXPECT_FALSE(destroyed->is_loaded());
  destroyed->cancel();
}

// As a vector does when it grows: what was moved is destroyed, and something new may be there.
TEST_F(EngineLifetimeTest, MovesFromPlaceToPlace) {
  std::optional<Engine> places[3];
  places[0].emplace(options_);
  for (int i = 1; i < 6; ++i) {
    places[i % 3].emplace(std::move(*places[(i - 1) % 3]));
    places[(i - 1) % 3].emplace();
    EXPECT_FALSE(places[(i - 1) % 3]->is_loaded());
    EXPECT_EQ(places[i % 3]->render(request_).steps, 3);
  }
}

TEST_F(EngineLifetimeTest, IsOfNoUseInAChild) {
  auto engine = std::make_unique<Engine>(options_);
  engine->render(request_);
  std::atomic<bool> quit{false};
  std::thread renders([&] {
    while (!quit) engine->render(request_);
  });
  EXPECT_EQ(in_child([&] {
              const auto told = [](const std::string& message) {
                return contains(message, "forked after the engine was loaded");
              };
              bool all = told(outcome([&] { engine->render(request_); }));
              all = told(outcome([&] { engine->load(options_); })) && all;
              all = told(outcome([&] { engine->info(); })) && all;
              all = told(outcome([&] { engine->state(); })) && !engine->is_loaded() && all;
              engine->cancel();
              engine.reset();
              Engine own(options_);
              return all && own.render(request_).steps == 3;
            }),
            0);
  quit = true;
  renders.join();
  EXPECT_EQ(engine->render(request_).steps, 3) << "the parent's is as it was";
}

// --- what is known meanwhile ---

TEST_F(EngineLifetimeTest, TellsWhatIsInUseDuringARender) {
  Engine engine(options_);
  const uint64_t before = engine.info().used_bytes;
  uint64_t most = 0;
  engine.render(request_, {.progress = [&](const RenderProgress&) {
                  most = std::max(most, engine.info().used_bytes);
                  EXPECT_EQ(engine.info().used_bytes, engine.state().used_bytes);
                  return true;
                }});
  EXPECT_GT(most, before);
}

TEST_F(EngineLifetimeTest, SaysThatAModelIsBeingLoaded) {
  Engine engine(options_);
  int asked = 0;
  engine.load(options_, [&](const RenderProgress&) {
    EXPECT_ERROR_WITH(engine.info(), "being loaded");
    EXPECT_ERROR_WITH(engine.check(request_), "being loaded");
    EXPECT_FALSE(engine.is_loaded());
    EXPECT_FALSE(engine.state().loaded);
    ++asked;
    return true;
  });
  EXPECT_GT(asked, 0);
  EXPECT_EQ(engine.info().family, "ideogram4");
}

// --- cancelling ---

// At each call of a callback, from the text to the delivered picture.
TEST_F(EngineLifetimeTest, HonoursACancelAtEveryMoment) {
  Engine engine(options_);
  PictureRequest request = request_;
  request.images = 2;
  for (int moment = 1;; ++moment) {
    int now = 0;
    bool cancelled = false;
    int after = 0;
    const auto happens = [&] {
      if (cancelled) ++after;
      if (++now == moment) {
        engine.cancel();
        cancelled = true;
      }
    };
    const std::string message = outcome([&] {
      engine.render(request, {.progress =
                                  [&](const RenderProgress&) {
                                    happens();
                                    return true;
                                  },
                              .preview = [&](const Preview&) { happens(); },
                              .picture = [&](const Picture&) { happens(); }});
    });
    if (!cancelled) {
      EXPECT_EQ(message, "");
      EXPECT_GT(moment, 15) << "text, steps, previews, decoding and pictures";
      return;
    }
    EXPECT_TRUE(contains(message, "stopped on request")) << moment << ": " << message;
    // A step's preview and its progress belong together.
    EXPECT_LE(after, 1) << moment;
  }
}

TEST_F(EngineLifetimeTest, HonoursACancelOfAnotherThread) {
  Engine engine(options_);
  request_.size = {128, 128};
  request_.steps = 1;
  for (int round = 0; round < 12; ++round) {
    std::atomic<bool> decodes{false}, called{false};
    std::thread cancels([&] {
      while (!decodes) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
      called = true;
      engine.cancel();
    });
    bool delivered = false, before_delivery = false;
    const std::string message = outcome([&] {
      engine.render(request_, {.progress =
                                   [&](const RenderProgress& progress) {
                                     if (progress.stage == Stage::decode) decodes = true;
                                     return true;
                                   },
                               .picture =
                                   [&](const Picture&) {
                                     delivered = true;
                                     before_delivery = called;
                                     while (!called) std::this_thread::yield();
                                     std::this_thread::sleep_for(std::chrono::milliseconds(2));
                                   }});
    });
    cancels.join();
    EXPECT_TRUE(contains(message, "stopped on request")) << round << delivered << before_delivery;
  }
}

// Behind everything that a render does: its copies of a callback go last.
TEST_F(EngineLifetimeTest, HonoursACancelBehindTheLastCallback) {
  Engine engine(options_);
  bool delivered = false;
  int cancels = 0;
  struct CancelsAtItsEnd {
    ~CancelsAtItsEnd() {
      if (*delivered && ++*cancels == 1) engine->cancel();
    }
    Engine* engine;
    bool* delivered;
    int* cancels;
  };
  RenderCallbacks callbacks;
  callbacks.picture = [&](const Picture&) { delivered = true; };
  const CancelsAtItsEnd at_end{&engine, &delivered, &cancels};
  callbacks.progress = [at_end](const RenderProgress&) { return true; };
  EXPECT_THROW(engine.render(request_, callbacks), Cancelled);
  EXPECT_TRUE(delivered);
  EXPECT_EQ(engine.render(request_).steps, 3) << "the next call is not cancelled";
}

}  // namespace
}  // namespace octet::test
