// A process that makes a resumable file and is killed at fifty random moments.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "formats/resumable_safetensors.h"
#include "formats/resume_job.h"

namespace octet::test {
namespace {

constexpr int kKills = 50;
constexpr uint64_t kBatch = 20'000;  // two or three tensors
constexpr auto kPause = std::chrono::microseconds(300);

// The child's whole life; returns its exit status.
int make_slowly(const std::string& path, const ResumeJob& job) {
  try {
    ResumableSafetensors file(path, job.tensors, job.metadata, job.key, {.batch_bytes = kBatch});
    for (const TensorInfo& tensor : file.layout()) {
      if (file.is_finished(tensor.name)) continue;
      const auto bytes = ResumeJob::content(tensor);
      const size_t half = bytes.size() / 2;
      file.write(tensor.name, half, std::span(bytes).subspan(half));
      std::this_thread::sleep_for(kPause);
      file.write(tensor.name, 0, std::span(bytes).first(half));
      file.finish(tensor.name);
    }
    file.commit();
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

class Killed : public testing::Test {
 protected:
  Killed() {
    for (int i = 0; i < 40; ++i) {
      const auto dtype = i % 3 == 0 ? DType::f32 : DType::i8;
      job_.tensors.push_back({"tensor." + std::to_string(i), dtype, {i % 7, 1000 + 13 * i}});
    }
    expected_ = job_.file(folder_);
  }

  // Whether the child was killed, rather than done before.
  bool run_and_kill_after(std::chrono::microseconds delay) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(make_slowly(path_, job_));
    EXPECT_GT(child, 0);
    std::this_thread::sleep_for(delay);
    ::kill(child, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
  }

  // What a resuming run finds; checks that the finished tensors have their bytes in the part.
  std::set<std::string> finished_tensors() {
    // Without verification: what the journal promises must hold by itself.
    const ResumableSafetensors file(path_, job_.tensors, job_.metadata, job_.key,
                                    {.verify_finished = false});
    const std::string part = folder_.read("a.safetensors.part");
    const size_t data = expected_.size() - file.layout().back().end;
    std::set<std::string> names;
    for (const TensorInfo& tensor : file.layout()) {
      if (!file.is_finished(tensor.name)) continue;
      names.insert(tensor.name);
      EXPECT_TRUE(part.empty() || part.compare(data + tensor.begin, tensor.bytes(), expected_,
                                               data + tensor.begin, tensor.bytes()) == 0)
          << tensor.name;
    }
    return names;
  }

  TemporaryFolder folder_{fast_place()};
  std::string path_ = folder_.file("a.safetensors");
  ResumeJob job_;
  std::string expected_;
};

TEST_F(Killed, LeavesTheOldFileOrTheNewOneAndNeverLosesWork) {
  // The moments are spread over most of what an undisturbed run takes here.
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(make_slowly(path_, job_), 0);
  const std::chrono::duration<double, std::micro> whole = std::chrono::steady_clock::now() - start;
  std::filesystem::remove(path_);
  std::uniform_int_distribution<> moment(0, static_cast<int>(whole.count() * 0.8));

  std::mt19937 random(6);
  std::string old;  // the target before; empty for none
  std::set<std::string> finished;
  int kills = 0;
  int resumptions = 0;
  int completions = 0;
  while (kills < kKills) {
    kills += run_and_kill_after(std::chrono::microseconds(moment(random))) ? 1 : 0;
    const std::string target = folder_.read("a.safetensors");
    if (target == expected_) {
      // Every other time the next round replaces a file.
      ++completions;
      ResumableSafetensors::discard(path_);
      EXPECT_EQ(folder_.entries(), 1u);
      finished.clear();
      old = completions % 2 == 0 ? "" : "old";
      std::filesystem::remove(path_);
      if (!old.empty()) folder_.write("a.safetensors", old);
      continue;
    }
    ASSERT_TRUE(target == old) << "the target is neither the old file nor the new one";
    const std::set<std::string> now = finished_tensors();
    ASSERT_TRUE(std::includes(now.begin(), now.end(), finished.begin(), finished.end()))
        << "finished tensors were lost";
    resumptions += !finished.empty() && now.size() > finished.size() ? 1 : 0;
    finished = now;
  }
  EXPECT_GT(resumptions, 0);
  ASSERT_EQ(make_slowly(path_, job_), 0);
  EXPECT_TRUE(folder_.read("a.safetensors") == expected_);
  EXPECT_EQ(folder_.entries(), 1u);
  RecordProperty("completions", completions);
  RecordProperty("resumptions", resumptions);
}

}  // namespace
}  // namespace octet::test
