#include "server/routes/error_objects.h"

#include <memory>
#include <utility>

namespace octet::server {
namespace {

const char* error_type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Failure failure(int status, std::string message, std::string param, std::string code) {
  return {.status = status,
          .message = std::move(message),
          .type = error_type_of(status),
          .param = std::move(param),
          .code = std::move(code)};
}

void refuse(int status, std::string message, std::string param, std::string code) {
  throw Refused{failure(status, std::move(message), std::move(param), std::move(code))};
}

void refuse_field(const std::string& field, std::string message) {
  refuse(400, std::move(message), field);
}

Json error_json(const Failure& failure) {
  return {{"message", failure.message},
          {"type", failure.type},
          {"param", text_or_null(failure.param)},
          {"code", text_or_null(failure.code)}};
}

http::Response error_response(const Failure& failure) {
  http::Response response{
      .status = failure.status,
      .headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}}};
  if (failure.retry_after_s > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(failure.retry_after_s));
  }
  if (failure.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  const Json body{{"error", error_json(failure)}};
  response.body = std::make_shared<const std::string>(to_line(body));
  return response;
}

}  // namespace octet::server
