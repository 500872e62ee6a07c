#include "base/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/out_of_memory.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// The number after `key` in a file of lines "key number", or of a file that is one number (no key).
// Nothing when the file, the key or the number is absent; memory.max may say "max".
std::optional<double> number_in(const fs::path& path, std::string_view key = "") {
  std::ifstream file(path);
  std::string word, rest;
  double number = 0;
  if (key.empty()) return file >> number ? std::optional(number) : std::nullopt;
  for (; file >> word; std::getline(file, rest)) {
    if (word == key && file >> number) return number;
    file.clear();
  }
  return std::nullopt;
}

// The two versions of control groups differ only in names.
struct GroupFiles {
  const char* file_system;  // in mountinfo
  const char* limit;
  const char* used;
  const char *inactive, *active;  // in memory.stat, of the group and those in it: pages of files
};
constexpr GroupFiles kVersion1 = {"cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file", "total_active_file"};
constexpr GroupFiles kVersion2 = {"cgroup2", "memory.max", "memory.current", "inactive_file",
                                  "active_file"};

bool has_word(const std::string& list, std::string_view word) {  // words between commas
  std::stringstream words(list);
  for (std::string one; std::getline(words, one, ',');) {
    if (one == word) return true;
  }
  return false;
}

// The group of this process: of version 2, whose line names no controllers, or of version 1's
// memory controller.
std::optional<fs::path> group_in(const fs::path& root, const GroupFiles& files) {
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string number, controllers, path; std::getline(lines, number, ':') &&
                                              std::getline(lines, controllers, ':') &&
                                              std::getline(lines, path);) {
    const bool is_version_2 = number == "0" && controllers.empty();
    if (&files == &kVersion2 ? is_version_2 : has_word(controllers, "memory")) return path;
  }
  return std::nullopt;
}

// Spaces and the like are written as "\040" in mountinfo.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char value = 0;
    const char* digits = text.data() + i + 1;
    const bool is_escape = text[i] == '\\' && i + 3 < text.size() &&
                           std::from_chars(digits, digits + 3, value, 8).ptr == digits + 3;
    plain += is_escape ? static_cast<char>(value) : text[i];
    if (is_escape) i += 3;
  }
  return plain;
}

struct Mount {
  fs::path group;  // mounted at `point`
  fs::path point;
};

std::optional<Mount> mount_in(const fs::path& root, const GroupFiles& files) {
  std::ifstream lines(root / "proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string skipped, group, point, field, type, source, options;
    fields >> skipped >> skipped >> skipped >> group >> point;
    while (fields >> field && field != "-") {
    }
    fields >> type >> source >> options;
    if (type == files.file_system && (&files == &kVersion2 || has_word(options, "memory"))) {
      return Mount{unescaped(group), unescaped(point)};
    }
  }
  return std::nullopt;
}

// The least memory left by any group, from that of the process to the top of the mount.
std::optional<double> left_by_groups(const fs::path& root, const GroupFiles& files) {
  const auto group = group_in(root, files);
  const auto mount = mount_in(root, files);
  if (!group || !mount) return std::nullopt;
  const fs::path top = root / mount->point.relative_path();
  // A container without a namespace of its own sees its group as the top of the mount.
  const fs::path inside = group->lexically_relative(mount->group);
  std::vector<fs::path> folders = {top};
  for (const fs::path& name : inside) {
    if (name == "..") break;  // in another namespace: only the top is known
    if (name != ".") folders.push_back(folders.back() / name);
  }
  std::optional<double> least;
  for (const fs::path& folder : folders) {
    const auto limit = number_in(folder / files.limit);
    const auto used = number_in(folder / files.used);
    if (!limit || !used) continue;
    // Pages of files make room, as in MemAvailable, also those that were used lately: a model that
    // is read in each step would otherwise use up all memory.
    double cached = 0;
    for (const char* pages : {files.inactive, files.active}) {
      cached += number_in(folder / "memory.stat", pages).value_or(0);
    }
    const double left = std::max(0.0, *limit - std::max(0.0, *used - cached));
    least = std::min(least.value_or(left), left);
  }
  return least;
}

}  // namespace

std::optional<FreeMemory> free_memory(const fs::path& root) {
  std::optional<FreeMemory> free;
  if (const auto kilobytes = number_in(root / "proc/meminfo", "MemAvailable:")) {
    free = FreeMemory{*kilobytes * 1024, false};
  }
  for (const GroupFiles* files : {&kVersion1, &kVersion2}) {
    const auto left = left_by_groups(root, *files);
    if (left && (!free || *left < free->bytes)) free = FreeMemory{*left, true};
  }
  return free;
}

void check_free_memory(const std::string& what, double bytes, const Sentence& remedy) {
  const auto free = free_memory();
  if (!free || bytes <= free->bytes) return;
  throw OutOfMemory(sentence("{} needs about {:.1f} GB of memory, and {:.1f} GB are free{}; {}",
                             what, bytes * 1e-9, free->bytes * 1e-9,
                             free->is_limited ? " below its control group's limit" : "", remedy));
}

}  // namespace octet
