// Trying again what failed for a moment.
#pragma once

#include <functional>

#include "base/error.h"

namespace octet::hub {

// What may be gone at the next attempt: a dropped connection, a busy server.
class Transient : public Error {
 public:
  explicit Transient(const std::string& sentence, double seconds = 0)
      : Error(sentence), after_seconds(seconds) {}
  double after_seconds;  // the server asked to wait so long; 0 when it did not
};

class Stopped : public Error {
 public:
  Stopped() : Error("pull: stopped; what was fetched is kept, pull again to go on") {}
};

struct Patience {
  int retries = 5;                  // after attempts that brought nothing
  std::function<bool()> is_wanted;  // asked while waiting; false ends it with Stopped
};

// Seconds before the attempt after `failures` failures in a row: half a second, doubled each time,
// at most half a minute, and somewhat random, so that many clients do not come back together.
double backoff_seconds(int failures, double random_share);

// Calls `attempt` until it returns. After a Transient it waits and calls again, at most `retries`
// times in a row; `got_further`, where given, says that the failed attempt brought something, which
// begins the count anew. A server that asks for a very long pause is an Error.
void try_until_done(const Patience& patience, const std::function<void()>& attempt,
                    const std::function<bool()>& got_further = {});

}  // namespace octet::hub
