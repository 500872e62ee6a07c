// The error objects of all routes, as OpenAI's clients read them:
//
//   {"error": {"message": "...", "type": "invalid_request_error", "param": "size", "code": null}}
#pragma once

#include <string>

#include "server/http/exchange.h"
#include "server/routes/json.h"
#include "server/service/job.h"

namespace octet::server {

// A failure with the type that goes with its status.
Failure failure(int status, std::string message, std::string param = {}, std::string code = {});
// Throws it as Refused.
[[noreturn]] void refuse(int status, std::string message, std::string param = {},
                         std::string code = {});
// 400: a field of the request is wrong.
[[noreturn]] void refuse_field(const std::string& field, std::string message);

Json error_json(const Failure& failure);  // {"message": ..., ...}
http::Response error_response(const Failure& failure);

}  // namespace octet::server
