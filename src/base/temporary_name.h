// Names of temporary files, for a signal handler that ends the program: nobody else would remove
// them then.
#pragma once

#include <string>

namespace octet {

// One name, remembered until forget() or the end of its life. Names beyond the first few, and such
// that are longer than any path, are not remembered.
class TemporaryName {
 public:
  TemporaryName() = default;
  ~TemporaryName() { forget(); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  void remember(const std::string& path);  // of a file that is there: another's must not be removed
  void forget();

 private:
  int slot_ = -1;
};

}  // namespace octet
