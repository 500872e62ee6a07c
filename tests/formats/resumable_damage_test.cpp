// Resumable files that meet damaged leftovers, places that cannot be written, and full disks.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "formats/error_message.h"
#include "formats/resume_job.h"
#include "formats/safetensors.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

using ResumableDamage = ResumableTest;

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

TEST_F(ResumableDamage, ATornLineOfTheJournalIsDroppedAndWorkGoesOn) {
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

TEST_F(ResumableDamage, LinesThatAreNotItsOwnDoNotCount) {
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

TEST_F(ResumableDamage, ADamagedTensorIsMadeAgain) {
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

TEST_F(ResumableDamage, APartThatDoesNotFitTheJournalStartsFromNothing) {
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

TEST_F(ResumableDamage, AnEndBetweenRenameAndTidyingUpIsRecognised) {
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

TEST_F(ResumableDamage, PlacesThatCannotBeWrittenAreNamed) {
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

TEST_F(ResumableDamage, APipeInTheJournalsPlaceHoldsNobodyUp) {
  ::alarm(60);
  interrupt_after(2);
  ASSERT_EQ(::mkfifo((path_ + ".part.journal.new").c_str(), 0600), 0);
  EXPECT_ERROR_WITH(open(), "a.safetensors.part.journal.new: cannot be opened");
  ::alarm(0);
}

TEST_F(ResumableDamage, AJournalGoesWithItsPart) {
  interrupt_after(2);
  const std::string left = journal();
  ResumableSafetensors::tidy_up(path_);
  EXPECT_TRUE(exists(".part") && exists(".part.journal")) << "there is work to go on with";
  {
    const auto writing = open();
    ResumableSafetensors::tidy_up(path_);
    EXPECT_TRUE(exists(".part.journal")) << "of a process at work";
  }
  fs::remove(path_ + ".part");
  folder_.write("a.safetensors.part.journal.new", left);
  ResumableSafetensors::tidy_up(path_);
  EXPECT_EQ(folder_.entries(), 0u);
  ResumableSafetensors::tidy_up(folder_.file("no/such/folder"));
}

TEST_F(ResumableDamage, ALargeFileThatIsLeftSaysWhatItIs) {
  job_.tensors = {{"a", DType::i8, {int64_t{1} << 59}}};
  const std::string header =
      header_bytes(path_, lay_out_tensors(path_, job_.tensors), job_.metadata);
  // The room is asked for when the header is there: nothing of this size can be had.
  const FileSizeLimit limit(header.size());
  EXPECT_ERROR_WITH(open(), "the disk has room for");
  const FileSizeLimit less(header.size() - 1);
  EXPECT_ERROR_WITH(open(), "a.safetensors.part: writing failed");
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(ResumableDamage, AFolderThatCannotBeWrittenIsNamed) {
  fs::permissions(folder_.path(), fs::perms(0555));
  const bool root = ::geteuid() == 0;  // root may write everywhere
  ASSERT_EQ(root ? ::seteuid(65534) : 0, 0);
  const std::string message = error_of([&] { open(); });
  ASSERT_EQ(root ? ::seteuid(0) : 0, 0);
  fs::permissions(folder_.path(), fs::perms(0755));
  EXPECT_TRUE(contains(message, "a.safetensors.part: cannot be created: Permission denied"));
}

TEST_F(ResumableDamage, ImpossibleDeclarationsAreRefused) {
  job_.tensors = {{"a", DType::i8, {1}}, {"a", DType::i8, {1}}};
  EXPECT_ERROR_WITH(open(), "the name was given twice");
  job_.tensors.clear();
  for (int i = 0; i < 16; ++i) {  // 2^59 bytes each
    job_.tensors.push_back({std::to_string(i), DType::i8, {int64_t{1} << 59}});
  }
  EXPECT_ERROR_WITH(open(), "larger than 2^63 bytes");
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(ResumableDamage, ADiskThatIsTooSmallIsToldAtOnce) {
  job_.tensors = {{"a", DType::i8, {int64_t{1} << 59}}};
  EXPECT_ERROR_WITH(open(), "but the file needs 57646075230342");
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(ResumableDamage, AFileAboveTheLimitIsRefused) {
  const FileSizeLimit limit(1 << 20);
  EXPECT_ERROR_WITH(open(), "a.safetensors.part: cannot get its size");
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(ResumableDamage, AFailedWriteEndsTheWorkAndKeepsWhatWasFinished) {
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

TEST_F(ResumableDamage, AJournalThatCannotGrowEndsTheWork) {
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
