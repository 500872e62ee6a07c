// The folder of the demo model: written once, whole, and by any number of callers.
#include "demo/demo_model.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/flux2_vae/decoder.h"
#include "models/ideogram4/files.h"
#include "models/ideogram4/text_features.h"
#include "models/ideogram4/transformer.h"
#include "models/qwen3/text_encoder.h"

namespace octet::demo {
namespace {

namespace fs = std::filesystem;

// Path and time of the last change of each file.
std::map<std::string, fs::file_time_type> files_in(const std::string& folder) {
  std::map<std::string, fs::file_time_type> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = entry.last_write_time();
  }
  return files;
}

TEST(DemoModel, HasEveryPartThatThePipelineReads) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.file("a/b/demo/");
  write_demo_model(folder);
  models::ModelFiles found = ideogram4::find_files({.model = folder});
  const ideogram4::Transformer first(found["transformer"], /*conditional=*/true);
  const auto dit = first.config();
  EXPECT_EQ(
      ideogram4::Transformer(found["unconditional_transformer"], /*conditional=*/false).config(),
      dit);
  const auto vae = flux2_vae::Decoder(found["vae"].path, {}).config();
  EXPECT_EQ(dit.latent_channels, 128);
  EXPECT_EQ(vae.latent_channels * 4, dit.latent_channels);
  EXPECT_EQ(vae.factor() * 2, 16);
  const qwen3::TextEncoder encoder(found["text_encoder"].path, ideogram4::kTappedLayers);
  EXPECT_EQ(encoder.feature_count(), dit.text_features);
  // What INT8 kernels like best.
  EXPECT_EQ(dit.hidden() % 64, 0);
  EXPECT_EQ(dit.ffn % 64, 0);
}

TEST(DemoModel, IsWrittenOnce) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.file("demo");
  write_demo_model(folder);
  const auto first = files_in(folder);
  EXPECT_GT(first.size(), 10u);
  write_demo_model(folder);
  EXPECT_EQ(files_in(folder), first);
  EXPECT_EQ(temporary.entries(), 1u) << "something is left beside the folder";
}

TEST(DemoModel, DamagedOrOldOnesAreReplaced) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.file("demo");
  const std::string weights = folder + "/transformer/diffusion_pytorch_model.safetensors";
  const std::string manifest = folder + "/octet_demo.json";
  write_demo_model(folder);
  const auto bytes = fs::file_size(weights);

  fs::resize_file(weights, 100);
  write_demo_model(folder);
  EXPECT_EQ(fs::file_size(weights), bytes);

  fs::remove(weights);
  write_demo_model(folder);
  EXPECT_EQ(fs::file_size(weights), bytes);

  for (const char* text : {R"({"revision": 0, "files": {}})", "{", "[]", R"({"revision": 1})",
                           R"({"revision": 1, "files": {"vae/config.json": "x"}})"}) {
    temporary.write("demo/octet_demo.json", text);
    write_demo_model(folder);
    EXPECT_GT(fs::file_size(manifest), 500u) << text;
  }
  EXPECT_EQ(temporary.entries(), 1u);
}

TEST(DemoModel, NeverTakesThePlaceOfSomethingElse) {
  const test::TemporaryFolder temporary;
  fs::create_directory(temporary.file("mine"));
  temporary.write("mine/letter.txt", "dear");
  EXPECT_ERROR_WITH(write_demo_model(temporary.file("mine")), "is not a demo model");
  EXPECT_EQ(temporary.read("mine/letter.txt"), "dear");
  temporary.write("file", "text");
  EXPECT_ERROR_WITH(write_demo_model(temporary.file("file")), "is not a demo model");
  EXPECT_ERROR_WITH(write_demo_model(temporary.file("file/demo")), "file/demo");
  EXPECT_EQ(temporary.read("file"), "text");
  EXPECT_EQ(temporary.entries(), 2u);
  fs::create_directory(temporary.file("empty"));
  write_demo_model(temporary.file("empty"));
  EXPECT_TRUE(fs::exists(temporary.file("empty/model_index.json")));
}

TEST(DemoModel, ConcurrentCallersAllSucceed) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.file("demo");
  for (const bool is_stale : {false, true}) {
    if (is_stale) temporary.write("demo/octet_demo.json", "{}");
    std::vector<std::string> errors(3);
    std::vector<std::thread> callers;
    for (std::string& error : errors) {
      callers.emplace_back([&folder, &error] {
        try {
          write_demo_model(folder);
        } catch (const std::exception& caught) {
          error = caught.what();
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(errors, std::vector<std::string>(3));
    EXPECT_EQ(temporary.entries(), 1u);
    const auto before = files_in(folder);
    write_demo_model(folder);
    EXPECT_EQ(files_in(folder), before) << "it was not complete";
  }
}

// A process that writes the model and was stopped in the middle: its two folders are there and
// locked, some file is written, the model is not in its place.
class StoppedWriter {
 public:
  explicit StoppedWriter(const test::TemporaryFolder& temporary) {
    constexpr int kAttempts = 100;  // on a busy machine it may be done before it is seen
    for (int attempt = 0; attempt < kAttempts && !stopped_; ++attempt) {
      fs::remove_all(temporary.file("demo"));
      start(temporary.file("demo"));
      while (!has_a_file(temporary) && is_running()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (child_ == 0) continue;
      send(SIGSTOP);
      stopped_ = WIFSTOPPED(wait(WUNTRACED)) && !fs::exists(temporary.file("demo"));
      if (!stopped_) end_by(SIGCONT);
    }
    EXPECT_TRUE(stopped_) << "never seen in the middle";
  }
  int end_by(int signal) {
    if (child_ == 0) return 0;
    send(signal);
    return wait(0);
  }

 private:
  void start(const std::string& folder) {
    child_ = ::fork();
    if (child_ != 0) return;
    try {
      write_demo_model(folder);
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  // Files are written under the locks only. (Between its making and its lock, a folder may be
  // removed by others; its writer then makes another.)
  static bool has_a_file(const test::TemporaryFolder& temporary) {
    std::error_code error;  // folders come and go
    for (fs::recursive_directory_iterator it(temporary.file(""), error), end; !error && it != end;
         it.increment(error)) {
      if (it->is_regular_file(error)) return true;
    }
    return false;
  }
  void send(int signal) const { ::kill(child_, signal); }
  // Whoever was waited for to the end is no child any more, and its number anybody's.
  int wait(int options) {
    int status = 0;
    const pid_t changed = ::waitpid(child_, &status, options);
    if (changed == child_ && !WIFSTOPPED(status)) child_ = 0;
    return status;
  }
  bool is_running() {
    wait(WNOHANG);
    return child_ != 0;
  }

  pid_t child_ = 0;
  bool stopped_ = false;
};

TEST(DemoModel, AKilledWriterLeavesNothingForTheNext) {
  const test::TemporaryFolder temporary;
  EXPECT_TRUE(WIFSIGNALED(StoppedWriter(temporary).end_by(SIGKILL)));
  ASSERT_EQ(temporary.entries(), 2u) << "it was not killed in the middle";
  write_demo_model(temporary.file("demo"));
  EXPECT_EQ(temporary.entries(), 1u);
}

TEST(DemoModel, AWriterThatOnlyRestsIsLeftAlone) {
  const test::TemporaryFolder temporary;
  StoppedWriter resting(temporary);
  write_demo_model(temporary.file("demo"));
  write_demo_model(temporary.file("demo"));
  EXPECT_EQ(temporary.entries(), 3u);
  EXPECT_EQ(resting.end_by(SIGCONT), 0);
  EXPECT_EQ(temporary.entries(), 1u);
}

TEST(DemoModel, EveryFolderIsTheSame) {
  const test::TemporaryFolder temporary;
  write_demo_model(temporary.file("a"));
  write_demo_model(temporary.file("b"));
  for (const auto& [path, time] : files_in(temporary.file("a"))) {
    const std::string name = fs::relative(path, temporary.file("a")).string();
    EXPECT_TRUE(temporary.read("a/" + name) == temporary.read("b/" + name)) << name;
  }
}

}  // namespace
}  // namespace octet::demo
