// Which jobs there are, on disk, so that after a restart a client that asks for one is told what
// became of it. Requests and pictures are not kept: whoever wants them asks again.
//
// One line for each job that is taken, one for each that ends and one for each that its client has
// deleted. A process that is killed loses none of them; a machine that loses power may.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/service/job.h"

namespace octet::server {

struct JournalEntry {
  std::string id, key;
  double created_at = 0, ended_at = 0;  // 0: it has not ended
  JobState state = JobState::queued;    // as it was last noted: running ones are queued, too
  std::string error = {};               // of one that failed
};

class Journal {
 public:
  // Reads `folder`/jobs.jsonl, creating both. Throws Error if it cannot, or if another process uses
  // the folder. Lines that a crash has cut short are skipped.
  explicit Journal(const std::string& folder);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::vector<JournalEntry>& former() const { return former_; }
  // Replaces the file by these entries; it appears whole or not at all.
  void rewrite(const std::vector<JournalEntry>& entries);
  // Throw Error if the disk is full, say.
  void note_taken(const Job& job);
  void note_ended(const JobView& job);
  void note_forgotten(const std::string& id);
  size_t bytes() const { return bytes_; }

 private:
  void write(const std::string& lines);

  std::string path_;
  int lock_ = -1, file_ = -1;
  size_t bytes_ = 0;
  std::vector<JournalEntry> former_;
};

}  // namespace octet::server
