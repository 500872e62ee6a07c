// Values that last as long as the process.
//
// exit() destroys what is static while other threads still run: Python's daemon threads, those that
// an embedding program left, and whatever uses the library in its own destructors. So nothing
// static in the library has a destructor; a test looks at the object files.
#pragma once

#include <utility>

namespace octet {

// static const auto& rows = never_destroyed<std::vector<Row>>(make_rows());
template <class T, class... Args>
T& never_destroyed(Args&&... args) {
  return *new T(std::forward<Args>(args)...);
}

}  // namespace octet
