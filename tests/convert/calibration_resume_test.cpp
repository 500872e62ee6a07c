// A calibration that is interrupted goes on to the same file; files of others are left alone.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "convert/calibrating.h"
#include "convert/calibration_job.h"
#include "formats/error_message.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "octet/error.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;
using convert::CalibrateRequest;
using convert::CalibrationState;

class Resuming : public Calibrating {
 protected:
  // The file of the whole, as if a caption were missing.
  std::string interrupted() const {
    const std::string yes = R"("octet.calibration.complete":"yes")";
    std::string content = whole_;
    const size_t at = content.find(yes);
    EXPECT_NE(at, content.npos);
    return content.replace(at, yes.size(), R"("octet.calibration.complete":"no" )");
  }

  void SetUp() override {
    Calibrating::SetUp();
    if (IsSkipped()) return;
    statistics_ = calibrate(small_calibration(folder_.file("whole")));
    whole_ = folder_.read("whole");
  }

  CalibrateRequest request() const { return small_calibration(folder_.file("state")); }

  // Runs until the `calls`th time that somebody asks whether to go on.
  template <class Stop>
  void run_until(int calls, const CalibrateRequest& request, Stop stop) {
    try {
      calibrate(request, DType::f32, [&](const RenderProgress&) { return --calls > 0 || stop(); });
      ADD_FAILURE() << "was not interrupted";
    } catch (const Cancelled&) {
    } catch (const std::runtime_error&) {
    }
  }

  // Which calls of a run to stop at: all of them, but of the text encoder's layers the first and
  // the last.
  std::vector<int> moments() {
    std::vector<int> found;
    int calls = 0;
    calibrate(small_calibration(), DType::f32, [&](const RenderProgress& progress) {
      ++calls;
      const bool is_within = progress.done > 1 && progress.done < progress.total;
      if (progress.stage != Stage::text || !is_within) found.push_back(calls);
      return true;
    });
    return found;
  }

  std::string job_key() const {
    return SafetensorsFile(folder_.file("whole")).metadata().at("octet.calibration.job");
  }

  quant::ActivationStatistics statistics_;
  std::string whole_;  // the file of a run without interruption
};

// Thrown in place of a kill: nothing is saved on the way out.
bool die() { throw std::runtime_error("killed"); }
bool cancel() { return false; }

TEST_F(Resuming, TheFileHoldsTheStatistics) {
  expect_same(quant::read_statistics(folder_.file("whole")), statistics_);
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(Resuming, AfterEveryInterruption) {
  const std::vector<int> stops = moments();
  ASSERT_EQ(stops.size(), 7u + 2 * 2 + 4) << "steps, layers of both captions, blocks";
  for (const int calls : stops) {
    SCOPED_TRACE(calls);
    for (const auto stop : {die, cancel}) {
      fs::remove(folder_.file("state"));
      run_until(calls, request(), stop);
      expect_same(calibrate(request()), statistics_);
      ASSERT_TRUE(folder_.read("state") == whole_);
    }
  }
}

TEST_F(Resuming, AgainAndAgain) {
  // Each run gets one step further, whether steps are saved as they come or when it is stopped.
  for (const double every : {0.0, 1e9}) {
    fs::remove(folder_.file("state"));
    CalibrateRequest asked = request();
    asked.save_every_s = every;
    for (int64_t done = 1; done < 6; ++done) {
      const auto until = [&](const RenderProgress& progress) {
        if (progress.stage != Stage::denoise) return true;
        EXPECT_GE(progress.done, done - 1);
        return progress.done < done;
      };
      EXPECT_THROW(calibrate(asked, DType::f32, until), Cancelled);
    }
    expect_same(calibrate(asked), statistics_);
    EXPECT_TRUE(folder_.read("state") == whole_);
  }
}

TEST_F(Resuming, WhatIsDoneIsNotDoneAgain) {
  const auto time = fs::last_write_time(folder_.file("whole"));
  const auto statistics =
      calibrate(small_calibration(folder_.file("whole")), DType::f32, [](const auto& progress) {
        EXPECT_EQ(progress.stage, Stage::denoise);
        EXPECT_EQ(progress.done, 6);
        return true;
      });
  expect_same(statistics, statistics_);
  EXPECT_EQ(fs::last_write_time(folder_.file("whole")), time);
}

// It may have taken hours.
TEST_F(Resuming, WhatAnotherJobBeganStays) {
  const auto expect_refused = [&](auto change) {
    CalibrateRequest asked = request();
    change(asked);
    folder_.write("state", interrupted());
    EXPECT_ERROR_WITH(calibrate(asked), "unfinished calibration; give the same captions");
    EXPECT_TRUE(folder_.read("state") == interrupted());
  };
  expect_refused([](auto& asked) { ++asked.seed; });
  expect_refused([](auto& asked) { ++asked.rows; });
  expect_refused([](auto& asked) { asked.captions.pop_back(); });
  expect_refused([](auto& asked) { std::swap(asked.captions[0], asked.captions[1]); });
  expect_refused([](auto& asked) { asked.schedule.guidance = {7, 2, 3}; });
  expect_refused([](auto& asked) { asked.size.width -= asked.size.width / 5; });
  expect_refused([](auto& asked) { asked.files.erase("unconditional_transformer"); });
}

TEST_F(Resuming, AJobThatOnlyWaitsDifferentlyIsTheSame) {
  CalibrateRequest asked = request();
  asked.save_every_s = 5;
  folder_.write("state", interrupted());
  calibrate(asked);
  EXPECT_TRUE(folder_.read("state") == whole_);
}

TEST_F(Resuming, AnotherJobWithoutAStepIsReplaced) {
  CalibrationState state;
  convert::write_state(folder_.file("state"), job_key(), 16, state);
  CalibrateRequest asked = request();
  ++asked.seed;
  CalibrateRequest alone = asked;
  alone.state_path.clear();
  expect_same(calibrate(asked), calibrate(alone));
}

TEST_F(Resuming, WhatAnotherJobCompletedStays) {
  CalibrateRequest asked = request();
  ++asked.seed;
  folder_.write("state", whole_);
  EXPECT_ERROR_WITH(calibrate(asked), "of another calibration");
  EXPECT_TRUE(folder_.read("state") == whole_);
}

TEST_F(Resuming, TheFileSaysWhetherItIsComplete) {
  folder_.write("state", whole_);
  EXPECT_TRUE(convert::is_complete(folder_.file("state")));
  folder_.write("state", interrupted());
  EXPECT_FALSE(convert::is_complete(folder_.file("state")));
}

TEST_F(Resuming, ARequestThatCannotRunTouchesNothing) {
  CalibrateRequest asked = request();
  asked.seed = 4;
  asked.max_memory = 1;
  folder_.write("state", whole_);
  EXPECT_ERROR_WITH(calibrate(asked), "bytes at least");
  EXPECT_TRUE(folder_.read("state") == whole_);
}

TEST_F(Resuming, AnotherFileIsAnotherJob) {
  const std::string copy = folder_.file("model");
  fs::copy(golden_path("model"), copy, fs::copy_options::recursive);
  CalibrateRequest asked = request();
  asked.files = asked.family->find({.model = copy});
  folder_.write("state", interrupted());
  EXPECT_ERROR_WITH(calibrate(asked), "unfinished calibration");
  fs::remove(folder_.file("state"));
  calibrate(asked);
  EXPECT_TRUE(folder_.read("state") != whole_) << "another path";
  const std::string weights =
      copy + "/unconditional_transformer/diffusion_pytorch_model.safetensors";
  fs::last_write_time(weights, fs::last_write_time(weights) + std::chrono::seconds(5));
  EXPECT_ERROR_WITH(calibrate(asked), "of another calibration");
}

// As cp -p and rsync -t do.
TEST_F(Resuming, AFileThatKeptItsSizeAndTimeIsAnotherJob) {
  const std::string copy = folder_.file("model");
  fs::copy(golden_path("model"), copy, fs::copy_options::recursive);
  CalibrateRequest asked = request();
  asked.files = asked.family->find({.model = copy});
  calibrate(asked);
  const std::string weights = copy + "/transformer/diffusion_pytorch_model.safetensors";
  const auto time = fs::last_write_time(weights);
  fs::copy_file(weights, folder_.file("new"));
  fs::last_write_time(folder_.file("new"), time);
  fs::rename(folder_.file("new"), weights);
  EXPECT_ERROR_WITH(calibrate(asked), "of another calibration");
}

TEST_F(Resuming, FilesThatAreNoStateStayAsTheyAre) {
  const auto expect_refused = [&](const std::string& content, const char* part) {
    folder_.write("state", content);
    EXPECT_ERROR_WITH(calibrate(request()), part);
    EXPECT_TRUE(folder_.read("state") == content);
  };
  expect_refused("dear diary", "remove the file");
  expect_refused("", "remove the file");
  for (const size_t length :
       {size_t{1}, size_t{8}, size_t{100}, whole_.size() / 2, whole_.size() - 1}) {
    expect_refused(whole_.substr(0, length), "remove the file");
  }
  SafetensorsWriter writer(folder_.file("foreign"), {{"weight", DType::i8, {4}}});
  const std::byte bytes[4] = {};
  writer.write("weight", bytes);
  writer.commit();
  expect_refused(folder_.read("foreign"), "is not the state of a calibration");
  fs::remove(folder_.file("state"));
  fs::create_directory(folder_.file("state"));
  EXPECT_ERROR_WITH(calibrate(request()), "state");
}

TEST_F(Resuming, StatesThatWereChangedAreRefused) {
  const auto expect_refused = [&](const char* part, auto change) {
    CalibrationState state;
    state.statistics = statistics_;
    state.captions = 1;
    change(state);
    convert::write_state(folder_.file("state"), job_key(), 16, state);
    const std::string before = folder_.read("state");
    EXPECT_ERROR_WITH(calibrate(request()), part);
    EXPECT_TRUE(folder_.read("state") == before);
  };
  expect_refused("says 3 captions", [](auto& state) { state.captions = 3; });
  expect_refused("and 3 steps", [](auto& state) {
    state.steps = 3;
    state.latent.assign(16 * 20, 0.5f);
  });
  expect_refused("has no latent", [](auto& state) { state.steps = 1; });
  expect_refused("has a latent", [](auto& state) { state.latent.assign(16 * 20, 0.5f); });
  expect_refused("expected 320", [](auto& state) {
    state.steps = 1;
    state.latent.assign(16 * 19, 0.5f);
  });
  expect_refused("\"other\"",
                 [](auto& state) { state.statistics["other"] = state.statistics.begin()->second; });
  expect_refused("8 rows of", [](auto& state) {
    auto& inputs = state.statistics.begin()->second;
    inputs.rows.resize(8 * static_cast<size_t>(inputs.k));
  });
  expect_refused("no inputs of the linear conditional.input_proj", [](auto& state) {
    state.captions = 2;
    state.statistics.erase("conditional.input_proj");
  });
  expect_refused("NaN", [](auto& state) { state.statistics.begin()->second.rows[0] = NAN; });
}

// The real thing, from outside: a child is killed until one gets to the end.
TEST_F(Resuming, AfterKills) {
  constexpr int kMostKills = 40;
  int kills = 0;
  for (bool finished = false; !finished;) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        calibrate(request());
        ::_exit(0);
      } catch (const std::exception&) {
        ::_exit(1);
      }
    }
    // Later and later, so that it comes to an end on the slowest machine.
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + kills * kills));
    if (kills < kMostKills) ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    finished = WIFEXITED(status);
    if (finished) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
    } else {
      ++kills;
    }
  }
  EXPECT_GT(kills, 0);
  EXPECT_TRUE(folder_.read("state") == whole_);
}

}  // namespace
}  // namespace octet::test
