// What clients are told went wrong. None of these sentences has a path, a key or a stack in it.
#pragma once

#include "octet/error.h"
#include "server/service/job.h"

namespace octet::server {

// Names the field as requests do: "n" for the library's `images`.
Failure wrong_request(const InvalidRequest& error);
Failure wrong_field(std::string field, std::string sentence);
Failure unexpected(const std::string& request_id);
Failure out_of_memory();
Failure took_too_long(double limit_s);
Failure server_ended();
Failure lost_by_restart();
Failure still_loading();
Failure nothing_loaded();

}  // namespace octet::server
