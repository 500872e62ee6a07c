#include "formats/resumable_safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/atomic_file.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "formats/part_file.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

std::string part_of(const std::string& target) { return target + ".part"; }
std::string journal_of(const std::string& target) { return target + ".part.journal"; }

// Absent files are as good as removed ones.
void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    fail("{}: cannot be removed: {}", path, system_error_text(errno));
  }
}

void remove_journal(const std::string& path) {
  remove_file(path);
  remove_file(path + kFreshSuffix);
}

void refuse_impossible_target(const std::string& path) {
  check(!path.empty(), "the path of a file to write is empty, expected a file name");
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  check(path.back() != '/' && !(exists && S_ISDIR(status.st_mode)),
        "{}: is a folder, expected a file", path);
  check(!exists || S_ISREG(status.st_mode),
        "{}: is not a regular file; a file that is made over several runs needs a place on a disk",
        path);
}

}  // namespace

ResumableSafetensors::ResumableSafetensors(const std::string& path,
                                           const std::vector<TensorDeclaration>& tensors,
                                           const std::map<std::string, std::string>& metadata,
                                           const std::string& key, const ResumeOptions& options)
    : layout_(lay_out_tensors(path, tensors)),
      batch_bytes_(options.batch_bytes),
      progress_(layout_.size()) {
  for (size_t i = 0; i < layout_.size(); ++i) index_.emplace(layout_[i].name, i);
  const std::string header = header_bytes(path, layout_, metadata);
  data_begin_ = header.size();
  const auto size = checked_add(data_begin_, layout_.empty() ? 0 : layout_.back().end);
  check(size && *size <= uint64_t{std::numeric_limits<int64_t>::max()},
        "{}: the file would be larger than 2^63 bytes", path);
  file_size_ = *size;
  job_ = hash_bytes(std::as_bytes(std::span(header)),
                    hash_bytes(std::as_bytes(std::span(key)), key.size()));
  refuse_impossible_target(path);
  target_ = options.at_link == AtLink::follow ? follow_links(path) : path;
  part_ = part_of(target_);
  journal_path_ = journal_of(target_);
  fd_ = open_locked(part_, IfAbsent::create);
  try {
    resumed_ = resume(header, options);
    if (!resumed_) start_afresh(header);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

ResumableSafetensors::~ResumableSafetensors() {
  try {
    if (usable_) sync_batch();
  } catch (...) {
    // The tensors of the last batch are made again by the next run.
  }
  if (fd_ >= 0) ::close(fd_);
}

// Whether the file has the size and the header of this job.
bool ResumableSafetensors::belongs(int fd, const std::string& header) const {
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (static_cast<uint64_t>(status.st_size) != file_size_) return false;
  std::string found(header.size(), '\0');
  return read_at(fd, 0, std::as_writable_bytes(std::span(found))) && found == header;
}

bool ResumableSafetensors::resume(const std::string& header, const ResumeOptions& options) {
  auto finished = read_resume_journal(journal_path_, job_, layout_.size());
  if (!finished) return false;
  const auto verify = [&](int fd) {
    std::erase_if(*finished, [&](const FinishedTensor& tensor) {
      return checksum(fd, layout_[tensor.index]) != tensor.checksum;
    });
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  };
  struct stat status = {};
  if (::fstat(fd_, &status) == 0 && status.st_size == 0) {
    // A journal whose part has gone: perhaps an earlier commit() was ended after its rename. The
    // part that was just created keeps the lock; it and the journal go with this run's commit().
    const Descriptor target{::open(target_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (target.fd < 0 || !belongs(target.fd, header)) return false;
    verify(target.fd);  // always: nothing else tells whose file this is
    if (finished->size() != layout_.size()) return false;
    in_place_ = true;
  } else {
    if (!belongs(fd_, header)) return false;
    if (options.verify_finished) verify(fd_);
    journal_ = std::make_unique<ResumeJournal>(journal_path_, job_, *finished);
  }
  for (const FinishedTensor& tensor : *finished) progress_[tensor.index].state = State::finished;
  finished_ = finished->size();
  return true;
}

// The journal goes first and comes last: it never speaks of a part that is not laid out. The header
// comes before the room is taken: whatever large file is left by a kill says what it is.
void ResumableSafetensors::start_afresh(const std::string& header) {
  try {
    remove_journal(journal_path_);
    sync_folder_of(part_);
    if (::ftruncate(fd_, 0) != 0) {
      fail("{}: cannot be emptied: {}", part_, system_error_text(errno));
    }
    if (!write_at(fd_, 0, std::as_bytes(std::span(header)))) {
      fail("{}: writing failed: {}", part_, system_error_text(errno));
    }
    reserve_room(fd_, part_, file_size_);
    if (::fsync(fd_) != 0) fail("{}: writing failed: {}", part_, system_error_text(errno));
    journal_ = std::make_unique<ResumeJournal>(journal_path_, job_, std::span<FinishedTensor>());
  } catch (...) {
    ::unlink((journal_path_ + kFreshSuffix).c_str());
    ::unlink(part_.c_str());
    throw;
  }
}

size_t ResumableSafetensors::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

bool ResumableSafetensors::is_finished(std::string_view name) const {
  const size_t index = index_of(name);
  const std::lock_guard lock(mutex_);
  return progress_[index].state == State::finished;
}

size_t ResumableSafetensors::index_of(std::string_view name) const {
  const auto found = index_.find(name);
  check(found != index_.end(), "{}: has no tensor {}", part_, Quoted{name});
  return found->second;
}

void ResumableSafetensors::require_usable() const {
  check(usable_, "{}: the file was completed, or given up after an error", part_);
}

void ResumableSafetensors::give_up(const std::string& what) {
  const int reason = errno;
  {
    const std::lock_guard lock(mutex_);
    usable_ = false;
  }
  fail("{}: {}: {}; what was finished before is kept for another run", part_, what,
       system_error_text(reason));
}

// What the file holds, rather than what was given to write(): the order of the pieces does not
// matter then, and the bytes are still in the page cache when a tensor is finished.
std::optional<uint64_t> ResumableSafetensors::checksum(int fd, const TensorInfo& tensor) const {
  std::vector<std::byte> buffer(std::min<uint64_t>(kPiece, tensor.bytes()));
  uint64_t sum = tensor.bytes();
  for (uint64_t at = tensor.begin; at < tensor.end; at += buffer.size()) {
    const auto piece = std::span(buffer).first(std::min<uint64_t>(kPiece, tensor.end - at));
    if (!read_at(fd, data_begin_ + at, piece)) return std::nullopt;
    sum = hash_bytes(piece, sum);
  }
  return sum;
}

void ResumableSafetensors::mark_written(size_t index, uint64_t offset, uint64_t size) {
  Progress& progress = progress_[index];
  const std::string name = in_quotes(layout_[index].name);
  check(progress.state == State::open, "{}: tensor {}: is finished already", part_, name);
  auto& written = progress.written;
  uint64_t end = offset + size;
  auto after = written.lower_bound(offset);
  const bool overlaps = (after != written.end() && after->first < end) ||
                        (after != written.begin() && std::prev(after)->second > offset);
  check(!overlaps, "{}: tensor {}: some of its bytes {} to {} were written before", part_, name,
        offset, end);
  if (after != written.end() && after->first == end) {
    end = after->second;
    after = written.erase(after);
  }
  if (after != written.begin() && std::prev(after)->second == offset) {
    std::prev(after)->second = end;
  } else {
    written.emplace(offset, end);
  }
}

void ResumableSafetensors::write(std::string_view name, uint64_t offset,
                                 std::span<const std::byte> piece) {
  const size_t index = index_of(name);
  const TensorInfo& tensor = layout_[index];
  check(offset <= tensor.bytes() && piece.size() <= tensor.bytes() - offset,
        "{}: tensor {}: {} bytes from byte {} on do not fit into its {}", part_, Quoted{name},
        piece.size(), offset, tensor.bytes());
  {
    const std::lock_guard lock(mutex_);
    require_usable();
    if (piece.empty()) return;
    mark_written(index, offset, piece.size());
  }
  const uint64_t at = data_begin_ + tensor.begin + offset;
  if (!write_at(fd_, at, piece)) give_up("writing failed");
  // The disk begins at once, so that the sync of a batch finds little left to wait for. Where this
  // is not possible (errors are ignored), the sync does it all.
  ::sync_file_range(fd_, static_cast<off_t>(at), static_cast<off_t>(piece.size()),
                    SYNC_FILE_RANGE_WRITE);
}

void ResumableSafetensors::finish(std::string_view name) {
  const size_t index = index_of(name);
  const TensorInfo& tensor = layout_[index];
  {
    const std::lock_guard lock(mutex_);
    require_usable();
    Progress& progress = progress_[index];
    check(progress.state == State::open, "{}: tensor {}: is finished already", part_,
          in_quotes(name));
    uint64_t written = 0;
    for (const auto& [begin, end] : progress.written) written += end - begin;
    check(written == tensor.bytes(), "{}: tensor {}: is incomplete, {} of {} bytes were written",
          part_, in_quotes(name), written, tensor.bytes());
    progress.state = State::finishing;
    progress.written.clear();
  }
  const auto sum = checksum(fd_, tensor);
  if (!sum) give_up("reading back failed");
  // Starts the transfer and does not wait: the disk works while the next tensor is computed.
  ::sync_file_range(fd_, static_cast<off_t>(data_begin_ + tensor.begin),
                    static_cast<off_t>(tensor.bytes()), SYNC_FILE_RANGE_WRITE);
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    progress_[index].state = State::finished;
    ++finished_;
    batch_.push_back({index, *sum});
    batch_size_ += tensor.bytes();
    full = batch_size_ >= batch_bytes_;
  }
  if (full) sync_batch();
}

void ResumableSafetensors::sync_batch() {
  const std::lock_guard sync_lock(sync_mutex_);
  std::vector<FinishedTensor> batch;
  {
    const std::lock_guard lock(mutex_);
    require_usable();
    batch.swap(batch_);
    batch_size_ = 0;
  }
  if (batch.empty()) return;
  // After a failure the kernel may drop the pages, so a second attempt would prove nothing.
  if (::fdatasync(fd_) != 0) give_up("writing failed");
  try {
    journal_->append(batch);
  } catch (const Error&) {
    const std::lock_guard lock(mutex_);
    usable_ = false;  // lines after a torn one would not be found
    throw;
  }
  for (const FinishedTensor& entry : batch) {
    const TensorInfo& tensor = layout_[entry.index];
    ::posix_fadvise(fd_, static_cast<off_t>(data_begin_ + tensor.begin),
                    static_cast<off_t>(tensor.bytes()), POSIX_FADV_DONTNEED);
  }
}

void ResumableSafetensors::commit() {
  {
    const std::lock_guard lock(mutex_);
    require_usable();
    for (size_t i = 0; i < layout_.size(); ++i) {
      if (progress_[i].state == State::finished) continue;
      fail("{}: tensor {}: is not finished, and {} of {} are", part_, in_quotes(layout_[i].name),
           finished_, layout_.size());
    }
  }
  sync_batch();
  if (!in_place_) {
    struct stat status = {};
    const bool replaces = ::stat(target_.c_str(), &status) == 0;
    if (replaces && ::fchmod(fd_, status.st_mode & 0777) != 0) {
      fail("{}: cannot keep its permissions: {}", target_, system_error_text(errno));
    }
    if (::fsync(fd_) != 0) give_up("writing failed");
    if (::rename(part_.c_str(), target_.c_str()) != 0) {
      fail("{}: cannot be completed: {}", target_, system_error_text(errno));
    }
    sync_folder_of(target_);
  }
  {
    const std::lock_guard lock(mutex_);
    usable_ = false;
  }
  journal_.reset();
  // The journal outlives the rename, so that the work is never without one of the two.
  remove_journal(journal_path_);
  if (in_place_) remove_file(part_);
  ::close(std::exchange(fd_, -1));
}

void ResumableSafetensors::discard(const std::string& path) {
  const std::string target = follow_links(path);
  const Descriptor part{open_locked(part_of(target), IfAbsent::nothing)};
  remove_journal(journal_of(target));
  if (part.fd >= 0) remove_file(part_of(target));
}

void ResumableSafetensors::tidy_up(const std::string& path) noexcept {
  try {
    const std::string target = follow_links(path);
    const Descriptor part{open_locked(part_of(target), IfAbsent::nothing)};
    struct stat status = {};
    const bool holds_work = part.fd >= 0 && (::fstat(part.fd, &status) != 0 || status.st_size > 0);
    if (holds_work) return;
    remove_journal(journal_of(target));
    if (part.fd >= 0) remove_file(part_of(target));
  } catch (...) {
    // Another process is at it, or the folder cannot be written: it stays.
  }
}

}  // namespace octet
