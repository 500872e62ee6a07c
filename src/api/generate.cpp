// octet::generate: one engine for one request.
#include "octet/generate.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/requests.h"
#include "formats/boundary.h"
#include "hub/cache.h"

namespace octet {
RenderReport generate(const GenerateRequest& request, const RenderCallbacks& callbacks) try {
  if (request.picture.stop.stop_requested()) {
    throw Cancelled("generate: stopped on request before it began");
  }
  check(callbacks.picture != nullptr,
        "generate: there is no picture callback, expected a function");
  return engine::RequestSession(request.model, {request.picture}).run(0, callbacks);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
