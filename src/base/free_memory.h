// How much host memory this process can still use.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "octet/sentence.h"

namespace octet {

struct FreeMemory {
  double bytes = 0;
  bool is_limited = false;  // by a control group, to less than the machine has
};

// What can be used without swapping: the machine's free memory, or what is left below the limit of
// a control group that the process is in (a container, a service), whichever is less. Nothing if
// Linux does not say. `root` is a prefix of /proc and the mount points, for tests.
std::optional<FreeMemory> free_memory(const std::filesystem::path& root = "/");

// Linux promises memory that it does not have and kills whoever touches it: count first. Throws
// Error, beginning with `what` and ending with `remedy`, when fewer than `bytes` are free.
void check_free_memory(const std::string& what, double bytes,
                       const Sentence& remedy = "use something smaller");

}  // namespace octet
