// Writing a safetensors file over several runs of the program, tensor by tensor, in any order.
//
// The bytes go to `<path>.part`, laid out in full from the start, and `<path>.part.journal` lists
// the tensors that are finished and on the disk. Both stay when the program ends early, however it
// ends, and the next run that names the same job goes on from there. commit() moves the file to its
// name. So at any moment there is the old target, the old target beside a part that can be gone on
// with, or the new target.
//
// Finished tensors are journaled in batches, after one fdatasync for the batch: kill -9 costs the
// tensors since the last batch, a power cut no more. After a batch its pages leave the page cache,
// so that a large file does not push everything else out of memory.
//
// The first error of the system while writing ends the work: all further calls are refused, and
// what was journaled by then stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/atomic_file.h"
#include "formats/resume_journal.h"
#include "formats/safetensors_header.h"
#include "formats/tensor_info.h"

namespace octet {

struct ResumeOptions {
  // Reads the bytes of all finished tensors when work is resumed and compares their checksums;
  // tensors that differ (a disk that lied about syncing, for example) are made again.
  bool verify_finished = true;
  uint64_t batch_bytes = uint64_t{256} << 20;  // finished bytes between two syncs
  AtLink at_link = AtLink::follow;
};

class ResumableSafetensors {
 public:
  // `key` names the job, as text: the source's identity and every option that changes the bytes.
  // Work of another job, of another layout or with damaged files is thrown away. Throws Error when
  // another process is writing the file, when the disk has too little room, and where
  // SafetensorsWriter would.
  ResumableSafetensors(const std::string& path, const std::vector<TensorDeclaration>& tensors,
                       const std::map<std::string, std::string>& metadata, const std::string& key,
                       const ResumeOptions& options = {});
  // Without commit(), keeps the part and the journal for the next run.
  ~ResumableSafetensors();
  ResumableSafetensors(const ResumableSafetensors&) = delete;
  ResumableSafetensors& operator=(const ResumableSafetensors&) = delete;

  const std::vector<TensorInfo>& layout() const { return layout_; }

  // Whether an earlier run's work was found, if only its laid out file.
  bool resumed() const { return resumed_; }
  size_t finished() const;  // tensors, of this run and of earlier ones
  bool is_finished(std::string_view name) const;

  // The calls below may come from several threads at once, for ranges that do not overlap.

  // Writes a part of a tensor that is not finished. Every byte is written exactly once.
  void write(std::string_view name, uint64_t offset, std::span<const std::byte> piece);

  // Refuses while bytes of the tensor are missing. Empty tensors are finished like others.
  void finish(std::string_view name);

  // Refuses while a tensor is unfinished. The file that is replaced hands its permissions on.
  void commit();

  // Removes the part and the journal of `path`, if there are any, of whatever job.
  static void discard(const std::string& path);
  // Removes the journal of `path` if its part has gone: a run that is ended right behind the rename
  // of commit() leaves it, and where the file is found complete nobody opens it for writing again.
  static void tidy_up(const std::string& path) noexcept;

 private:
  enum class State { open, finishing, finished };
  struct Progress {
    State state = State::open;
    std::map<uint64_t, uint64_t> written;  // begin -> end, neither overlapping nor touching
  };

  size_t index_of(std::string_view name) const;
  bool belongs(int fd, const std::string& header) const;
  bool resume(const std::string& header, const ResumeOptions& options);
  void start_afresh(const std::string& header);
  std::optional<uint64_t> checksum(int fd, const TensorInfo& tensor) const;  // or errno
  void mark_written(size_t index, uint64_t offset, uint64_t size);
  void sync_batch();
  void require_usable() const;
  [[noreturn]] void give_up(const std::string& what);

  std::string target_;  // the path with symbolic links followed
  std::string part_;
  std::string journal_path_;
  std::vector<TensorInfo> layout_;
  std::unordered_map<std::string_view, size_t> index_;  // looks at the names in layout_
  uint64_t batch_bytes_;
  uint64_t data_begin_ = 0;
  uint64_t file_size_ = 0;
  uint64_t job_ = 0;
  int fd_ = -1;  // the part, which is locked as long as this is open
  bool resumed_ = false;
  bool in_place_ = false;  // the target is this job's file; only tidying up was missed

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Progress> progress_;
  size_t finished_ = 0;
  std::vector<FinishedTensor> batch_;  // finished, but not in the journal yet
  uint64_t batch_size_ = 0;
  bool usable_ = true;  // false after an error and after commit()

  std::mutex sync_mutex_;  // held while a batch goes to disk; taken before mutex_
  std::unique_ptr<ResumeJournal> journal_;
};

}  // namespace octet
