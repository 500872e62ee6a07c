// How much memory of the host this process can still take.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace octet {

struct FreeMemory {
  double bytes = 0;
  bool is_limited = false;  // by a control group, which leaves less than the machine has
};

// What can be taken without swapping: what the machine has free, or what is left below the limit
// of a control group that the process is in (a container, a service), whichever is less. Nothing
// when Linux does not say. `root` stands before /proc and the mount points, for tests.
std::optional<FreeMemory> free_memory(const std::filesystem::path& root = "/");

// Linux hands out memory that it does not have and kills whoever touches it: count first. Throws
// Error, beginning with `what`, when fewer than `bytes` are free.
void check_free_memory(const std::string& what, double bytes);

}  // namespace octet
