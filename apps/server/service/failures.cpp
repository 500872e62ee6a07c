#include "server/service/failures.h"

#include <map>
#include <string>
#include <utility>

namespace octet::server {
namespace {

// Fields of requests as the library calls them, and as JSON does.
std::string name_of(const std::string& field) {
  static const std::map<std::string, std::string> names{{"caption", "json_prompt"},
                                                        {"negative", "negative_prompt"},
                                                        {"images", "n"},
                                                        {"loras", "lora"},
                                                        {"out", "output_format"},
                                                        {"quality", "output_compression"}};
  const auto at = names.find(field);
  return at == names.end() ? field : at->second;
}

std::string seconds(double value) {
  std::string text = std::to_string(static_cast<int64_t>(value));
  return text + " s";
}

}  // namespace

Failure wrong_field(std::string field, std::string sentence) {
  return {.status = 400,
          .message = std::move(sentence),
          .type = "invalid_request_error",
          .param = std::move(field)};
}

Failure wrong_request(const InvalidRequest& error) {
  return wrong_field(name_of(error.field()), error.sentence().said([](const std::string& field) {
    return "`" + name_of(field) + "`";
  }));
}

Failure unexpected(const std::string& request_id) {
  return {
      .status = 500,
      .message = "the picture could not be made; the server's log has the reason under request " +
                 request_id,
      .code = "render_failed"};
}

Failure out_of_memory() {
  return {.status = 503,
          .message =
              "the device has too little memory for this picture at the moment; ask for a "
              "smaller size, or again later",
          .code = "out_of_memory",
          .retry_after_s = 30};
}

Failure took_too_long(double limit_s) {
  return {.status = 504,
          .message = "rendering took longer than this server allows, " + seconds(limit_s) +
                     "; ask for fewer steps, a smaller size or fewer pictures",
          .type = "invalid_request_error",
          .code = "timeout"};
}

Failure server_ended() {
  return {.status = 503,
          .message = "the server ended before this job did; ask again",
          .code = "restarted",
          .retry_after_s = 10};
}

Failure lost_by_restart() {
  Failure failure = server_ended();
  failure.message = "the server was restarted before this job ended, or since; ask again";
  return failure;
}

Failure still_loading() {
  return {.status = 503,
          .message = "the model is being loaded; ask again in a moment",
          .code = "loading",
          .retry_after_s = 5};
}

Failure nothing_loaded() {
  return {.status = 503,
          .message = "the model could not be loaded; the server's log has the reason",
          .code = "no_model",
          .retry_after_s = 60};
}

}  // namespace octet::server
