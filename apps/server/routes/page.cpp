// The page and its files, which are part of the program, and the description of the API.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "openapi_text.h"
#include "server/page/page_files.h"
#include "server/routes/context.h"

namespace octet::server {
namespace {

// Only what comes from here runs, and no other page shows this one in a frame.
constexpr const char* kPagePolicy =
    "default-src 'self'; img-src 'self' blob: data:; style-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void send_file(const CallPtr& call, std::string_view text, std::string_view type) {
  const std::string tag = fmt::format("\"{:016x}\"", std::hash<std::string_view>()(text));
  // Asked for again each time: the next version of the program has another one.
  http::Headers headers{{"ETag", tag}, {"Cache-Control", "no-cache"}};
  const std::string* const known = call->request().header("if-none-match");
  if (known != nullptr && known->find(tag) != std::string::npos) {
    return call->answer({.status = 304, .headers = std::move(headers)});
  }
  headers.emplace_back("Content-Type", std::string(type));
  headers.emplace_back("Content-Security-Policy", kPagePolicy);
  call->answer({.headers = std::move(headers), .body = std::make_shared<const std::string>(text)});
}

void send_page_file(const CallPtr& call, std::string_view path) {
  for (const PageFile& file : page_files()) {
    if (file.path == path) return send_file(call, file.text, file.type);
  }
  refuse(404, "there is nothing at this path", {}, "not_found");
}

}  // namespace

void add_page_routes(Context& context) {
  const auto add = [&](const char* pattern, std::function<void(const CallPtr&)> answer) {
    context.router.add({.method = "GET",
                        .pattern = pattern,
                        .place = Route::Place::here,
                        .open = true,
                        .answer = std::move(answer)});
  };
  add("/", [](const CallPtr& call) { send_page_file(call, "/"); });
  add("/page/{*}", [](const CallPtr& call) { send_page_file(call, call->request().path); });
  add("/openapi.json",
      [](const CallPtr& call) { send_file(call, kOpenApiText, "application/json"); });
}

}  // namespace octet::server
