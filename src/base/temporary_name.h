// Names of temporary files, for a signal handler that ends the program: nothing else would remove
// them.
#pragma once

#include <string>

namespace octet {

// One name, remembered until forget() or its destructor. Names beyond the first few, and names
// longer than any path, are not remembered.
class TemporaryName {
 public:
  TemporaryName() = default;
  ~TemporaryName() { forget(); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  void remember(const std::string& path);  // the file must exist: another's must not be removed
  void forget();

 private:
  int slot_ = -1;
};

}  // namespace octet
