// Which tensors of an unfinished file are finished: a text file of lines of one width.
//
//   octet finished tensors of job 0123456789abcdef
//   0000002a 9f86d081884c7d65 5feceb66ffc86f38
//
// A line holds the tensor's place in the layout, the checksum of its bytes, and the checksum of the
// line itself with the job's hash in it. So a line that was torn by a crash, damaged, or copied
// from another job is recognised and counts as absent; at worst a tensor is made once more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace octet {

struct FinishedTensor {
  size_t index = 0;  // in the layout
  uint64_t checksum = 0;

  bool operator==(const FinishedTensor&) const = default;
};

// The intact lines of the journal at `path`; nothing when it is absent, unreadable, or of another
// job. Places from `tensors` on, and all but the first line of a place, count as damaged.
std::optional<std::vector<FinishedTensor>> read_resume_journal(const std::string& path,
                                                               uint64_t job, size_t tensors);

// Whether the file is a journal, of whatever job.
bool is_resume_journal(const std::string& path);

// Behind the journal's name while a new one is made.
inline constexpr const char* kFreshSuffix = ".new";

class ResumeJournal {
 public:
  // Writes a journal with these lines, which replaces one that is there at once or not at all.
  ResumeJournal(std::string path, uint64_t job, std::span<const FinishedTensor> finished);
  ~ResumeJournal();
  ResumeJournal(const ResumeJournal&) = delete;
  ResumeJournal& operator=(const ResumeJournal&) = delete;

  // The lines are on the disk when this returns.
  void append(std::span<const FinishedTensor> finished);

 private:
  void write_and_sync(const std::string& lines);

  std::string path_;
  uint64_t job_;
  int fd_ = -1;
};

}  // namespace octet
