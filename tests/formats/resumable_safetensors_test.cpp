#include "formats/resumable_safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "formats/error_message.h"
#include "formats/resume_job.h"
#include "formats/safetensors.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

using Resumable = ResumableTest;

TEST_F(Resumable, MakesTheFileThatTheWriterMakes) {
  const auto file = open();
  EXPECT_FALSE(file->resumed());
  EXPECT_TRUE(exists(".part"));
  EXPECT_EQ(fs::file_size(path_ + ".part"), expected_.size());
  EXPECT_FALSE(exists(""));
  complete(*file);
  const SafetensorsFile read(path_);
  for (const TensorInfo& tensor : file->layout()) {
    EXPECT_TRUE(std::ranges::equal(read.bytes(tensor.name), ResumeJob::content(tensor)));
  }
}

TEST_F(Resumable, WorksInTheUsualTemporaryFolder) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  for (size_t run = 0; run < 2; ++run) {
    ResumableSafetensors file(path, job_.tensors, job_.metadata, job_.key);
    EXPECT_EQ(file.finished(), run * 2);
    for (size_t i = run * 2; i < run * 2 + 2; ++i) make(file, file.layout()[i]);
  }
  ResumableSafetensors file(path, job_.tensors, job_.metadata, job_.key);
  make_all(file);
  file.commit();
  EXPECT_TRUE(folder.read("a.safetensors") == expected_);
}

TEST_F(Resumable, KeepsWhatEarlierRunsFinished) {
  for (size_t run = 0; run < job_.tensors.size(); ++run) {
    const auto file = open();
    EXPECT_EQ(file->resumed(), run > 0);
    ASSERT_EQ(file->finished(), run);
    for (size_t i = 0; i < file->layout().size(); ++i) {
      EXPECT_EQ(file->is_finished(file->layout()[i].name), i < run);
    }
    make(*file, file->layout()[run]);
    EXPECT_EQ(file->finished(), run + 1);
    // Written, but not finished: the next run begins this one from its first byte.
    if (run + 1 < file->layout().size() && file->layout()[run + 1].bytes() > 0) {
      file->write(file->layout()[run + 1].name, 1, std::vector<std::byte>(2, std::byte{0xEE}));
    }
  }
  complete(*open());
}

TEST_F(Resumable, TakesPiecesInAnyOrderAndFromSeveralThreads) {
  const auto file = open({.batch_bytes = 1000});
  const TensorInfo big = *std::ranges::find(file->layout(), "big", &TensorInfo::name);
  const auto bytes = ResumeJob::content(big);
  constexpr size_t kPieces = 50;
  const size_t size = bytes.size() / kPieces;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = kPieces; i-- > 0;) {
        if (i * 7 % 4 == t) file->write("big", i * size, std::span(bytes).subspan(i * size, size));
      }
    });
  }
  threads.emplace_back([&] {
    for (const TensorInfo& tensor : file->layout()) {
      if (tensor.name != "big") make(*file, tensor);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file->finished(), job_.tensors.size() - 1);
  file->finish("big");
  complete(*file);
}

TEST_F(Resumable, RefusesWrongCallsAndGoesOn) {
  const auto file = open();
  const std::vector<std::byte> bytes(281);
  EXPECT_ERROR_WITH(file->write("absent", 0, bytes), "has no tensor \"absent\"");
  EXPECT_ERROR_WITH(file->finish("absent"), "has no tensor \"absent\"");
  EXPECT_ERROR_WITH(file->is_finished("absent"), "has no tensor \"absent\"");
  EXPECT_ERROR_WITH(file->write("b", 0, bytes), "281 bytes from byte 0 on do not fit into its 280");
  EXPECT_ERROR_WITH(file->write("b", 281, {}), "do not fit");
  EXPECT_ERROR_WITH(file->write("b", ~uint64_t{0}, std::span(bytes).first(2)), "do not fit");
  EXPECT_ERROR_WITH(file->finish("b"), "is incomplete, 0 of 280 bytes");
  const TensorInfo b = *std::ranges::find(file->layout(), "b", &TensorInfo::name);
  const auto content = ResumeJob::content(b);
  const auto write = [&](size_t begin, size_t end) {
    file->write("b", begin, std::span(content).subspan(begin, end - begin));
  };
  write(100, 200);
  EXPECT_ERROR_WITH(write(199, 201), "were written before");
  EXPECT_ERROR_WITH(write(0, 101), "were written before");
  EXPECT_ERROR_WITH(write(120, 130), "were written before");
  EXPECT_ERROR_WITH(write(0, 280), "were written before");
  write(0, 50);
  write(200, 280);
  EXPECT_ERROR_WITH(file->finish("b"), "is incomplete, 230 of 280 bytes");
  write(50, 100);
  EXPECT_ERROR_WITH(write(60, 61), "were written before");
  file->finish("b");
  EXPECT_ERROR_WITH(file->finish("b"), "is finished already");
  EXPECT_ERROR_WITH(write(0, 1), "is finished already");
  EXPECT_ERROR_WITH(file->commit(), "is not finished, and 1 of 5 are");
  complete(*file);
  EXPECT_ERROR_WITH(file->commit(), "was completed");
  EXPECT_ERROR_WITH(file->write("b", 0, {}), "was completed");
  EXPECT_ERROR_WITH(file->finish("b"), "was completed");
}

TEST_F(Resumable, ATensorGoesIntoTheJournalWithItsBatch) {
  const auto file = open({.batch_bytes = 5001});
  const size_t empty = journal().size();
  make(*file, *std::ranges::find(file->layout(), "a", &TensorInfo::name));
  EXPECT_EQ(journal().size(), empty);
  EXPECT_TRUE(file->is_finished("a"));
  make(*file, *std::ranges::find(file->layout(), "b", &TensorInfo::name));
  EXPECT_EQ(std::ranges::count(journal(), '\n'), 3);
}

TEST_F(Resumable, AnotherJobOrLayoutStartsFromNothing) {
  const ResumeJob before = job_;
  const auto changes = std::vector<std::function<void()>>{
      [&] { job_.key += "x"; },
      [&] { job_.key = ""; },
      [&] { job_.metadata["format"] = "tp"; },
      [&] { job_.tensors[0].dtype = DType::u8; },
      [&] { std::swap(job_.tensors[0], job_.tensors[4]); },
      [&] { job_.tensors.pop_back(); },
  };
  for (const auto& change : changes) {
    job_ = before;
    interrupt_after(3);
    change();
    expected_ = (fs::remove(path_), ResumeJob(job_).file(TemporaryFolder()));
    expect_fresh_and_complete();
    fs::remove(path_);
  }
}

TEST_F(Resumable, AnEmptyFileIsMadeToo) {
  job_.tensors.clear();
  expected_ = job_.file(folder_);
  interrupt_after(0);
  const auto file = open();
  EXPECT_TRUE(file->resumed());
  complete(*file);
}

TEST_F(Resumable, ReplacesTheOldFileAndKeepsItsPermissions) {
  folder_.write("a.safetensors", "old");
  fs::permissions(path_, fs::perms(0640));
  interrupt_after(2);
  EXPECT_EQ(folder_.read("a.safetensors"), "old");
  complete(*open());
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0640));
}

TEST_F(Resumable, FollowsALink) {
  fs::create_directory(folder_.file("real"));
  fs::create_symlink("real/b.safetensors", path_);
  make_all(*open());
  EXPECT_TRUE(fs::exists(folder_.file("real/b.safetensors.part")));
  open()->commit();
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(folder_.read("real/b.safetensors") == expected_);
}

TEST_F(Resumable, DiscardRemovesPartAndJournal) {
  ResumableSafetensors::discard(path_);
  folder_.write("a.safetensors", "old");
  interrupt_after(2);
  EXPECT_EQ(folder_.entries(), 3u);
  {
    const auto file = open();
    EXPECT_ERROR_WITH(ResumableSafetensors::discard(path_), "another process");
  }
  ResumableSafetensors::discard(path_);
  EXPECT_EQ(folder_.entries(), 1u);
  EXPECT_EQ(folder_.read("a.safetensors"), "old");
  set_journal("alone");
  ResumableSafetensors::discard(path_);
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(Resumable, TwoWritersAtOnceAreRefused) {
  const auto first = open();
  EXPECT_ERROR_WITH(open(), "a.safetensors.part: another process is writing it");
  complete(*first);
}

}  // namespace
}  // namespace octet::test
