// The plan file: which kernel won for each problem, kept for the next process. One per device.
//
// It only ever saves time, so nothing about it can break a run: no function here throws for what
// is or happens on disk. A file that is damaged, or was made under another header, is ignored with
// one log line and replaced by the next store(). One that cannot be read at all (a folder, no
// permission) is left alone, and so is a folder that cannot be written: one line, no plans kept.
//
// Processes share the file: store() holds a lock on <path>.lock while it merges, and the file
// itself only ever changes as a whole. The lock file stays, since removing it would let two
// processes lock two different files. One object is used by one thread at a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tune/plan_json.h"

namespace octet::tune {

// env::cache_dir()/plans; empty when there is no such folder, which is said in a debug line.
std::filesystem::path default_plan_folder();

// "NVIDIA H200 (PCIe)" -> "nvidia_h200_pcie.json".
std::string plan_file_name(std::string_view device_name);

// Where the plans of a device are kept by default; empty when nowhere.
std::filesystem::path default_plan_path(const PlanHeader& header);

class PlanCache {
 public:
  static constexpr std::chrono::milliseconds kLockPatience = std::chrono::seconds(20);

  PlanCache() = default;  // keeps no file
  // An empty path keeps no file either. Nothing is read yet; folders are made when needed.
  // store() waits for other processes as long as its patience lasts, and after it has run out once
  // no longer.
  PlanCache(const std::filesystem::path& path, PlanHeader header,
            std::chrono::milliseconds lock_patience = kLockPatience);

  // Reads the file as it is now.
  void load();

  // What load() or the latest store() saw; null when the problem is not there.
  const GemmPlan* find(const GemmProblem& problem) const;
  const Plans& plans() const { return plans_; }  // likewise, all of them

  // Adds the plan to the file, in addition to what other processes have added meanwhile.
  void store(const GemmProblem& problem, const GemmPlan& plan);

 private:
  std::optional<Plans> read_plans();
  void merge_ours(Plans& plans, const std::string& latest) const;
  void write(const Plans& plans) const;

  std::string path_;
  PlanHeader header_;
  std::chrono::milliseconds lock_patience_{0};
  Plans plans_;  // as on disk
  Plans ours_;   // stored through this object
  bool told_of_bad_file_ = false;
  bool told_of_failed_store_ = false;
};

}  // namespace octet::tune
