// Environment variables, in one place, so that the list of those that Octet reads is easy to find.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace octet::env {

// OCTET_FORCE_KERNEL: the name of the only GEMM kernel that may run.
std::optional<std::string> force_kernel();

// The folder for what Octet can recreate, such as plan files: OCTET_CACHE_DIR, else octet/ in
// XDG_CACHE_HOME (which counts only if it is absolute, as its specification says), else
// .cache/octet in HOME. Nothing when none of them is set. The folder need not exist.
std::optional<std::filesystem::path> cache_dir();

// OCTET_CACHE_MAX_GB: the total size that cached weights may have there.
std::optional<std::string> cache_max_gb();

// HOME, the user's folder.
std::optional<std::filesystem::path> home();

// OCTET_LOG: how much to log: debug, info or quiet. A program's flags (-v, -q) take precedence; see
// log::level_from_environment().
std::optional<std::string> log();

// OCTET_TRACE: comma-separated topics; `gemm` prints problem, chosen kernel and refusals.
bool trace(const std::string& topic);

// OCTET_PINNED: 0 keeps weights that wait for a GPU in ordinary host memory.
bool pinned();

// OCTET_GRAPH: 0 runs every step of a picture op by op and records nothing.
bool graph();

// The configuration file: OCTET_CONFIG, which empty means none, else octet/config.toml in
// XDG_CONFIG_HOME (if that is absolute), else in ~/.config. Nothing when there can be none. The
// file need not exist, unless `is_named`, by OCTET_CONFIG.
struct ConfigFile {
  std::filesystem::path path;
  bool is_named = false;
};
std::optional<ConfigFile> config_file();

// What is known of a terminal without asking it: TERM, TERM_PROGRAM and the like, and the locale.
struct Terminal {
  std::string name, program;
  bool has_kitty_window = false;
  bool is_shared = false;  // within tmux or screen, which swallow pictures
  bool draws = true;       // it has a cursor that goes back, and UTF-8
};
Terminal terminal();

// The variables of the Hugging Face Hub's tools, with their defaults.
struct Hub {
  std::string endpoint;  // HF_ENDPOINT, else https://huggingface.co; no slash at its end
  // HF_HUB_CACHE, else hub/ in HF_HOME, which is huggingface/ in XDG_CACHE_HOME or in ~/.cache.
  std::optional<std::filesystem::path> cache_dir;   // nothing when HOME is not set either
  std::string token;                                // HF_TOKEN; empty when it is not set
  std::optional<std::filesystem::path> token_file;  // HF_TOKEN_PATH, else token in HF_HOME
  bool offline = false;                             // HF_HUB_OFFLINE is 1, on, yes or true
  // HF_HUB_DOWNLOAD_TIMEOUT: seconds without a byte after which a connection counts as dropped.
  std::optional<std::string> timeout;
};
Hub hub();

}  // namespace octet::env
