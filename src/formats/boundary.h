// The edge of the library: what leaves a public function is an Error. Each of them ends with
//
//   Report work(const Request& request) try {
//     ...
//   } catch (...) {
//     rethrow_as_error();
//   }
#pragma once

namespace octet {

// The exception that is being handled, as an Error with one sentence of what it says. One that is
// an Error, or derives from it, stays what it is.
[[noreturn]] void rethrow_as_error();

}  // namespace octet
