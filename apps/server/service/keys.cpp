#include "server/service/keys.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "octet/error.h"

namespace octet::server {
namespace {

constexpr size_t kShortestKey = 16, kLongestKey = 256;
constexpr auto kBetweenLooks = std::chrono::seconds(1);

std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream stream(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::optional<double> read_weight(std::string_view word) {
  constexpr std::string_view kPrefix = "weight=";
  if (!word.starts_with(kPrefix)) return std::nullopt;
  word.remove_prefix(kPrefix.size());
  double weight = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), weight);
  const bool is_whole = error == std::errc() && end == word.data() + word.size();
  if (!is_whole || !(weight >= 0.01 && weight <= 100)) return std::nullopt;
  return weight;
}

bool is_printable_ascii(std::string_view text) {
  for (const char each : text) {
    if (each <= ' ' || each > '~') return false;
  }
  return true;
}

std::array<char, kLongestKey> padded(std::string_view key) {
  std::array<char, kLongestKey> bytes = {};
  std::memcpy(bytes.data(), key.data(), std::min(key.size(), bytes.size()));
  return bytes;
}

}  // namespace

std::vector<ClientKey> read_keys(std::string_view text) {
  std::vector<ClientKey> keys;
  std::set<std::string> names;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = words_of_line(line);
    if (words.empty()) continue;
    const auto expect = [&](bool is_right, const std::string& sentence) {
      if (!is_right) throw Error(fmt::format("line {}: {}", number, sentence));
    };
    expect(words.size() == 2 || words.size() == 3,
           fmt::format("it has {} words, expected NAME KEY [weight=2]", words.size()));
    ClientKey key{.name = words[0], .key = words[1]};
    expect(key.key.size() >= kShortestKey && key.key.size() <= kLongestKey &&
               is_printable_ascii(key.key),
           fmt::format("the key has {} bytes, expected {} to {}, of printable ASCII",
                       key.key.size(), kShortestKey, kLongestKey));
    expect(names.insert(key.name).second, "another line has this name, expected one for each");
    if (words.size() == 3) {
      const std::optional<double> weight = read_weight(words[2]);
      expect(weight.has_value(), "the third word is not weight=NUMBER, from 0.01 to 100");
      key.weight = *weight;
    }
    keys.push_back(std::move(key));
  }
  if (keys.empty()) throw Error("it has no keys, expected lines with NAME KEY");
  return keys;
}

bool same_key(std::string_view a, std::string_view b) {
  const auto left = padded(a), right = padded(b);
  volatile unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < kLongestKey; ++i) {
    difference = difference | static_cast<unsigned char>(left[i] ^ right[i]);
  }
  return difference == 0;
}

KeyFile::KeyFile(std::string path, Warn warn)
    : path_(std::move(path)),
      warn_(std::move(warn)),
      stamp_(stamp()),
      keys_(load()),
      looked_(std::chrono::steady_clock::now()) {}

// All keys are compared, whichever is the right one.
std::optional<std::string> KeyFile::name_of(std::string_view key) {
  const Keys keys = keys_now();
  const ClientKey* found = nullptr;
  for (const ClientKey& each : *keys) {
    if (same_key(each.key, key)) found = &each;
  }
  if (found == nullptr) return std::nullopt;
  return found->name;
}

double KeyFile::weight_of(const std::string& name) {
  const Keys keys = keys_now();
  for (const ClientKey& each : *keys) {
    if (each.name == name) return each.weight;
  }
  return 1;
}

KeyFile::Keys KeyFile::keys_now() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kBetweenLooks) return keys_;
  looked_ = now;
  const Stamp changed = stamp();
  if (changed == stamp_) return keys_;
  stamp_ = changed;
  try {
    keys_ = load();
  } catch (const Error& error) {
    warn_(fmt::format("{}; the keys from before stay in use", error.what()));
  }
  return keys_;
}

KeyFile::Stamp KeyFile::stamp() const {
  struct stat status = {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {.inode = status.st_ino,
          .bytes = status.st_size,
          .changed_ns = status.st_mtim.tv_sec * int64_t{1000000000} + status.st_mtim.tv_nsec};
}

KeyFile::Keys KeyFile::load() const {
  errno = 0;
  std::ifstream file(path_, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw Error(fmt::format("{}: cannot be read as a file of keys: {}", path_,
                            errno != 0 ? std::strerror(errno) : "it is empty"));
  }
  struct stat status = {};
  if (::stat(path_.c_str(), &status) == 0 && (status.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    warn_(
        fmt::format("{}: others on this machine may read the keys; chmod 600 prevents it", path_));
  }
  try {
    return std::make_shared<const std::vector<ClientKey>>(read_keys(text.str()));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path_, error.what()));
  }
}

}  // namespace octet::server
