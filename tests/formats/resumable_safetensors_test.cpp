#include "formats/resumable_safetensors.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

class Resumable : public testing::Test {
 protected:
  Resumable() {
    job_.tensors = {{"a", DType::i8, {100, 50}},
                    {"b", DType::f32, {70}},
                    {"none", DType::i8, {0, 4}},
                    {"big", DType::bf16, {700, 1000}},
                    {"tail\n", DType::u8, {3}}};
    job_.metadata = {{"format", "pt"}};
    expected_ = job_.file(folder_);
  }

  std::unique_ptr<ResumableSafetensors> open(ResumeOptions options = {}) const {
    return std::make_unique<ResumableSafetensors>(path_, job_.tensors, job_.metadata, job_.key,
                                                  options);
  }

  // Leaves a part in which `count` tensors are finished.
  void interrupt_after(size_t count) const {
    const auto file = open();
    for (size_t i = 0; i < count; ++i) make(*file, file->layout()[i]);
  }

  bool exists(const std::string& suffix) const { return fs::exists(path_ + suffix); }
  std::string part() const { return folder_.read("a.safetensors.part"); }
  std::string journal() const { return folder_.read("a.safetensors.part.journal"); }
  void set_part(std::string_view bytes) const { folder_.write("a.safetensors.part", bytes); }
  void set_journal(std::string_view text) const {
    folder_.write("a.safetensors.part.journal", text);
  }

  void expect_fresh_and_complete() const {
    const auto file = open();
    EXPECT_FALSE(file->resumed());
    EXPECT_EQ(file->finished(), 0u);
    complete(*file);
  }

  void complete(ResumableSafetensors& file) const {
    make_all(file);
    file.commit();
    EXPECT_TRUE(folder_.read("a.safetensors") == expected_);
    EXPECT_EQ(folder_.entries(), 1u);
  }

  TemporaryFolder folder_{fast_place()};
  std::string path_ = folder_.file("a.safetensors");
  ResumeJob job_;
  std::string expected_;
};

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

TEST_F(Resumable, ATornLineOfTheJournalIsDroppedAndWorkGoesOn) {
  interrupt_after(4);
  const std::string whole = journal();
  set_journal(whole.substr(0, whole.size() - 10));
  {
    const auto file = open();
    EXPECT_TRUE(file->resumed());
    EXPECT_EQ(file->finished(), 3u);
    make(*file, file->layout()[3]);
  }
  EXPECT_EQ(journal(), whole);
  complete(*open());
}

TEST_F(Resumable, LinesThatAreNotItsOwnDoNotCount) {
  interrupt_after(2);
  const std::string whole = journal();
  const size_t head = whole.find('\n') + 1;
  const std::string lines = whole.substr(head);
  const std::string kept = part();
  job_.key = "another";
  interrupt_after(0);
  set_part(kept);
  set_journal(journal() + lines);  // of another job
  EXPECT_EQ(open({.verify_finished = false})->finished(), 0u);
  job_.key = ResumeJob().key;
  for (const std::string& text : {whole + lines, whole + std::string(100000, '\n'),
                                  whole + std::string(5000, '\0'), whole + "junk"}) {
    set_part(kept);
    set_journal(text);
    EXPECT_EQ(open()->finished(), 2u);
    EXPECT_EQ(journal(), whole);  // what was damaged is gone
  }
}

TEST_F(Resumable, ADamagedTensorIsMadeAgain) {
  interrupt_after(4);
  std::string bytes = part();
  const TensorInfo b = open()->layout()[0];
  bytes[expected_.size() - 1] ^= 1;  // of the tensor that is not finished
  const size_t data =
      bytes.size() - SafetensorsFile(folder_.write("x", expected_)).tensors().back().end;
  fs::remove(folder_.file("x"));
  bytes[data + b.begin] ^= 1;
  set_part(bytes);
  const auto file = open();
  EXPECT_TRUE(file->resumed());
  EXPECT_EQ(file->finished(), 3u);
  EXPECT_FALSE(file->is_finished(b.name));
  complete(*file);
}

TEST_F(Resumable, APartThatDoesNotFitTheJournalStartsFromNothing) {
  interrupt_after(3);
  const std::string kept_part = part();
  const std::string kept_journal = journal();
  std::string other_header = kept_part;
  other_header[20] ^= 1;
  for (const std::string& bytes :
       {std::string(), std::string("x"), kept_part.substr(1), kept_part + "x", other_header,
        std::string(kept_part.size(), '\0')}) {
    set_part(bytes);
    set_journal(kept_journal);
    expect_fresh_and_complete();
    fs::remove(path_);
  }
  set_part(kept_part);  // a part without a journal
  expect_fresh_and_complete();
  fs::remove(path_);
  set_journal(kept_journal);  // and a journal without a part
  expect_fresh_and_complete();
}

TEST_F(Resumable, AnEndBetweenRenameAndTidyingUpIsRecognised) {
  auto file = open();
  make_all(*file);
  file.reset();
  const std::string complete_journal = journal();
  open()->commit();
  set_journal(complete_journal);
  for (int run = 0; run < 2; ++run) {  // the first one ends before its commit as well
    file.reset();
    file = open({.verify_finished = false});
    EXPECT_TRUE(file->resumed());
    EXPECT_EQ(file->finished(), job_.tensors.size());
    EXPECT_ERROR_WITH(open(), "another process");
    EXPECT_TRUE(folder_.read("a.safetensors") == expected_);
  }
  complete(*file);

  // A target that is not the journal's is no reason to stop.
  std::string damaged = expected_;
  damaged.back() ^= 1;
  for (const std::string& target : {damaged, expected_.substr(1), std::string("old")}) {
    folder_.write("a.safetensors", target);
    set_journal(complete_journal);
    expect_fresh_and_complete();
  }
  job_.key = "another";
  set_journal(complete_journal);
  expect_fresh_and_complete();
}

TEST_F(Resumable, PlacesThatCannotBeWrittenAreNamed) {
  const auto error_at = [&](const std::string& path) {
    return error_of([&] { ResumableSafetensors(path, job_.tensors, {}, "key"); });
  };
  EXPECT_TRUE(contains(error_at(folder_.file("absent/a")), "absent/a.part: cannot be created: No"));
  EXPECT_TRUE(contains(error_at(folder_.path()), "is a folder, expected a file"));
  EXPECT_TRUE(contains(error_at(folder_.file("x/")), "is a folder, expected a file"));
  EXPECT_TRUE(contains(error_at(""), "the path of a file to write is empty"));
  EXPECT_TRUE(contains(error_at("/dev/null"), "is not a regular file"));
  EXPECT_TRUE(contains(error_at(folder_.file(std::string(250, 'n'))), "File name too long"));
  EXPECT_EQ(folder_.entries(), 0u);
  fs::create_directory(path_ + ".part");
  EXPECT_TRUE(contains(error_at(path_), "a.safetensors.part: is a folder"));
  fs::remove(path_ + ".part");
  ASSERT_EQ(::mkfifo((path_ + ".part").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error_at(path_), "a.safetensors.part: is not a regular file"));
  fs::remove(path_ + ".part");
  fs::create_symlink("elsewhere", path_ + ".part");
  EXPECT_TRUE(contains(error_at(path_), "a.safetensors.part: cannot be created"));
  fs::remove(path_ + ".part");
  fs::create_directory(path_ + ".part.journal");
  EXPECT_TRUE(contains(error_at(path_), "a.safetensors.part.journal: cannot be removed"));
  EXPECT_FALSE(exists(".part"));
  fs::remove(path_ + ".part.journal");
  ASSERT_EQ(::mkfifo((path_ + ".part.journal").c_str(), 0600), 0);
  expect_fresh_and_complete();
}

TEST_F(Resumable, AFolderThatCannotBeWrittenIsNamed) {
  fs::permissions(folder_.path(), fs::perms(0555));
  const bool root = ::geteuid() == 0;  // root may write everywhere
  ASSERT_EQ(root ? ::seteuid(65534) : 0, 0);
  const std::string message = error_of([&] { open(); });
  ASSERT_EQ(root ? ::seteuid(0) : 0, 0);
  fs::permissions(folder_.path(), fs::perms(0755));
  EXPECT_TRUE(contains(message, "a.safetensors.part: cannot be created: Permission denied"));
}

TEST_F(Resumable, ImpossibleDeclarationsAreRefused) {
  job_.tensors = {{"a", DType::i8, {1}}, {"a", DType::i8, {1}}};
  EXPECT_ERROR_WITH(open(), "the name was given twice");
  job_.tensors.clear();
  for (int i = 0; i < 16; ++i) {  // 2^59 bytes each
    job_.tensors.push_back({std::to_string(i), DType::i8, {int64_t{1} << 59}});
  }
  EXPECT_ERROR_WITH(open(), "larger than 2^63 bytes");
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(Resumable, ADiskThatIsTooSmallIsToldAtOnce) {
  job_.tensors = {{"a", DType::i8, {int64_t{1} << 59}}};
  EXPECT_ERROR_WITH(open(), "but the file needs 57646075230342");
  EXPECT_EQ(folder_.entries(), 0u);
}

// A limit on file sizes, in place of a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

TEST_F(Resumable, AFileAboveTheLimitIsRefused) {
  const FileSizeLimit limit(1 << 20);
  EXPECT_ERROR_WITH(open(), "a.safetensors.part: cannot get its size");
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(Resumable, AFailedWriteEndsTheWorkAndKeepsWhatWasFinished) {
  {
    const auto file = open({.batch_bytes = 1});
    make(*file, file->layout()[0]);
    const FileSizeLimit limit(1 << 10);
    EXPECT_ERROR_WITH(make(*file, file->layout()[1]), "a.safetensors.part: writing failed");
    EXPECT_ERROR_WITH(make(*file, file->layout()[2]), "given up after an error");
    EXPECT_ERROR_WITH(file->commit(), "given up after an error");
  }
  const auto file = open();
  EXPECT_TRUE(file->resumed());
  EXPECT_EQ(file->finished(), 1u);
  complete(*file);
}

TEST_F(Resumable, AJournalThatCannotGrowEndsTheWork) {
  {
    const auto file = open({.batch_bytes = 1});
    make(*file, file->layout()[0]);
    const TensorInfo second = file->layout()[1];
    file->write(second.name, 0, ResumeJob::content(second));
    const FileSizeLimit limit(journal().size() + 20);  // a torn line
    EXPECT_ERROR_WITH(file->finish(second.name), "a.safetensors.part.journal: writing failed");
    EXPECT_ERROR_WITH(file->finish(file->layout()[2].name), "given up after an error");
  }
  const auto file = open();
  EXPECT_EQ(file->finished(), 1u);
  complete(*file);
}

}  // namespace
}  // namespace octet::test
