// The file with the keys that clients authenticate with:
//
//   # name  key                      who is served twice as often as others
//   anna    k-3f9a1c0d5e7b2846ffe1
//   batch   k-77e0a4c19d3b5f62aa08   weight=2
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::server {

struct ClientKey {
  std::string name, key;
  double weight = 1;  // of its jobs in the queue
};

// The keys in a text. Throws Error with the line's number for what is none; keys are not repeated
// in messages.
std::vector<ClientKey> read_keys(std::string_view text);

// Whether two keys are the same, in a time that depends on neither of them.
bool same_key(std::string_view a, std::string_view b);

class KeyFile {
 public:
  using Warn = std::function<void(const std::string& sentence)>;

  // Throws Error if it cannot be read. Warns of a file that others may read, and later of one that
  // has become unusable; then the keys from before stay.
  KeyFile(std::string path, Warn warn);

  // Whose key this is; nothing if it is nobody's. Looks at the file again when it has changed, at
  // most once per second.
  std::optional<std::string> name_of(std::string_view key);
  double weight_of(const std::string& name);  // 1 for a name that is gone

 private:
  // What tells a changed file from the same one.
  struct Stamp {
    ino_t inode = 0;
    off_t bytes = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Keys = std::shared_ptr<const std::vector<ClientKey>>;

  Keys keys_now();
  Stamp stamp() const;
  Keys load() const;

  const std::string path_;
  const Warn warn_;
  std::mutex mutex_;
  Stamp stamp_;
  Keys keys_;
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace octet::server
