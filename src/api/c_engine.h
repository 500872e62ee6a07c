// The handles of octet/octet.h, and its structs in the types of octet/engine.h.
#pragma once

#include <stop_token>
#include <vector>

#include "api/c_api.h"
#include "octet/engine.h"

struct octet_engine {
  octet::Engine engine;
};

struct octet_job {
  octet::Job job;
};

struct octet_stop {
  std::stop_source source;
};

namespace octet::c_api {

template <class Handle, class Work>
octet_status guarded_on(Handle* engine, Work&& work) noexcept {
  return guarded([&] {
    check_given(engine, "engine");
    work(engine->engine);
  });
}

std::vector<Lora> loras_of(const octet_lora* loras, size_t count);
ModelOptions options_of(const octet_options& given);
PictureRequest request_of(const octet_request& given);
std::stop_token token_of(const octet_stop* stop);  // NULL: one that is never requested

}  // namespace octet::c_api
