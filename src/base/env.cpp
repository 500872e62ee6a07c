#include "base/env.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

namespace octet::env {
namespace {

std::optional<std::string> read(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

// The first of these that is set decides, as in libc. Where none is, the locale would be C, but
// containers and services set none in terminals that have UTF-8.
bool locale_has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale = read(name).value_or("");
    if (locale.empty()) continue;
    for (char& c : locale) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return locale.find("utf-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return true;
}

// A folder or file that may begin with ~/.
std::optional<std::filesystem::path> read_path(const char* name) {
  const auto value = read(name);
  if (!value) return std::nullopt;
  const auto home = read("HOME");
  if (home && (*value == "~" || value->rfind("~/", 0) == 0)) {
    return std::filesystem::path(*home + value->substr(1));
  }
  return std::filesystem::path(*value);
}

bool is_true(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word == "1" || word == "ON" || word == "YES" || word == "TRUE";
}

std::optional<std::filesystem::path> hub_home() {
  if (const auto own = read_path("HF_HOME")) return own;
  if (const auto shared = read_path("XDG_CACHE_HOME")) return *shared / "huggingface";
  if (const auto home = read_path("HOME")) return *home / ".cache" / "huggingface";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> force_kernel() { return read("OCTET_FORCE_KERNEL"); }

std::optional<std::filesystem::path> cache_dir() {
  using std::filesystem::path;
  if (const auto own = read("OCTET_CACHE_DIR")) return path(*own);
  if (const auto shared = read("XDG_CACHE_HOME"); shared && path(*shared).is_absolute()) {
    return path(*shared) / "octet";
  }
  if (const auto home = read("HOME")) return path(*home) / ".cache" / "octet";
  return std::nullopt;
}

std::optional<std::filesystem::path> home() { return read_path("HOME"); }

std::optional<std::string> cache_max_gb() { return read("OCTET_CACHE_MAX_GB"); }

std::optional<std::string> log() { return read("OCTET_LOG"); }

std::optional<ConfigFile> config_file() {
  using std::filesystem::path;
  const char* const named = std::getenv("OCTET_CONFIG");
  if (named != nullptr && *named == '\0') return std::nullopt;
  if (const auto own = read_path("OCTET_CONFIG")) return ConfigFile{*own, true};
  if (const auto shared = read("XDG_CONFIG_HOME"); shared && path(*shared).is_absolute()) {
    return ConfigFile{path(*shared) / "octet" / "config.toml", false};
  }
  if (const auto home = read("HOME")) {
    return ConfigFile{path(*home) / ".config" / "octet" / "config.toml", false};
  }
  return std::nullopt;
}

Terminal terminal() {
  Terminal terminal;
  terminal.name = read("TERM").value_or("");
  terminal.program = read("TERM_PROGRAM").value_or("");
  if (terminal.program.empty() && read("KONSOLE_VERSION")) terminal.program = "konsole";
  terminal.has_kitty_window = read("KITTY_WINDOW_ID").has_value();
  terminal.is_shared =
      read("TMUX") || terminal.name.starts_with("screen") || terminal.name.starts_with("tmux");
  terminal.draws = terminal.name != "dumb" && locale_has_utf8();
  return terminal;
}

bool graph() { return read("OCTET_GRAPH") != "0"; }

bool pinned() { return read("OCTET_PINNED") != "0"; }

bool trace(const std::string& topic) {
  const auto topics = read("OCTET_TRACE");
  if (!topics) return false;
  std::istringstream list(*topics);
  for (std::string entry; std::getline(list, entry, ',');) {
    if (entry == topic) return true;
  }
  return false;
}

Hub hub() {
  Hub hub;
  hub.endpoint = read("HF_ENDPOINT").value_or("https://huggingface.co");
  while (!hub.endpoint.empty() && hub.endpoint.back() == '/') hub.endpoint.pop_back();
  const auto home = hub_home();
  hub.cache_dir = read_path("HF_HUB_CACHE");
  if (!hub.cache_dir && home) hub.cache_dir = *home / "hub";
  hub.token = read("HF_TOKEN").value_or("");
  hub.token_file = read_path("HF_TOKEN_PATH");
  if (!hub.token_file && home) hub.token_file = *home / "token";
  hub.offline = is_true(read("HF_HUB_OFFLINE").value_or(""));
  hub.timeout = read("HF_HUB_DOWNLOAD_TIMEOUT");
  return hub;
}

}  // namespace octet::env
