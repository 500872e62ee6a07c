// Environment variables, in one place so that the list of what Octet reads is short and findable.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace octet::env {

// OCTET_FORCE_KERNEL: the name of the only GEMM kernel that may run.
std::optional<std::string> force_kernel();

// The folder for what Octet can make again, such as plan files: OCTET_CACHE_DIR, else octet/ in
// XDG_CACHE_HOME (which counts only if it is absolute, as its specification says), else
// .cache/octet in HOME. Nothing when none of them is set. The folder need not exist.
std::optional<std::filesystem::path> cache_dir();

// OCTET_CACHE_MAX_GB: how large the weights that are kept there may be, all together.
std::optional<std::string> cache_max_gb();

// OCTET_LOG: how much to say: debug, info or quiet. Flags of a program (-v, -q) win over it; see
// log::level_from_environment().
std::optional<std::string> log();

// OCTET_TRACE: comma-separated topics; `gemm` prints problem, chosen kernel and refusals.
bool trace(const std::string& topic);

}  // namespace octet::env
