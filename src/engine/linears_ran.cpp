#include "engine/linears_ran.h"

#include "base/error.h"

namespace octet::engine {

LinearCount count_of(const LinearUses& linears) {
  LinearCount count;
  for (const auto& [name, use] : linears) {
    switch (use.precision) {
      case nn::Precision::int8: ++count.int8; break;
      case nn::Precision::protected_: ++count.protected_; break;
      case nn::Precision::kept: ++count.kept; break;
      case nn::Precision::floating: ++count.floating; break;
      case nn::Precision::fake: ++count.fake; break;
    }
  }
  return count;
}

void check_native(const Backend& backend) {
  const Sentence reason = backend.why_not_native_int8();
  check(reason.empty(), "`require_int8`: {}", reason);
}

void check_native(const LinearUses& linears) {
  for (const auto& [name, use] : linears) {
    const bool may_float =
        use.precision == nn::Precision::protected_ || use.precision == nn::Precision::kept;
    check(
        may_float || (use.int8 > 0 && use.floating == 0),
        "`require_int8`: the linear {} ran in floating point, {} of {} times; its checkpoint does "
        "not protect it",
        name, use.floating, use.int8 + use.floating);
  }
}

}  // namespace octet::engine
