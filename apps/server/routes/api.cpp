// The API as one object: what a request goes through before and after its route.
#include <fmt/format.h>

#include <utility>

#include "server/routes/context.h"
#include "server/routes/routes.h"

namespace octet::server {
namespace {

// For pages: what a browser must not do with an answer.
const http::Headers kAlways{{"X-Content-Type-Options", "nosniff"},
                            {"Referrer-Policy", "no-referrer"}};

bool has_body(const http::Request& head) {
  const std::string* const length = head.header("content-length");
  return head.header("transfer-encoding") != nullptr || (length != nullptr && *length != "0");
}

// A page of another server can make a browser send text, but this type only with permission.
bool is_json(const http::Request& head) {
  const std::string* const type = head.header("content-type");
  if (type == nullptr) return false;
  const std::string_view name = std::string_view(*type).substr(0, type->find_first_of("; \t"));
  constexpr std::string_view kExpected = "application/json";
  return name.size() == kExpected.size() &&
         std::equal(name.begin(), name.end(), kExpected.begin(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

std::string route_name(const Context& context, const http::Request& head) {
  const auto match = context.router.find(head.method, head.path);
  return match ? match->route->pattern : "other";
}

}  // namespace

struct Api::State : Context {
  using Context::Context;

  bool needs_key(const Route& route) const {
    if (route.open) return false;
    return !(options.loopback && route.pattern == "/metrics");
  }

  http::Headers always(const http::Request& head) const {
    http::Headers headers = kAlways;
    for (auto& each : cors_headers(access, head)) headers.push_back(std::move(each));
    return headers;
  }

  // What a browser asks before it lets a page of another server ask.
  http::Response preflight(const http::Request& head) const {
    const std::string methods = router.methods_of(head.path);
    return {.status = 204,
            .headers = {{"Allow", methods + ", OPTIONS"},
                        {"Access-Control-Allow-Methods", methods},
                        {"Access-Control-Allow-Headers",
                         "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"},
                        {"Access-Control-Max-Age", "600"}}};
  }

  // For the log: empty, too, for a key that is none of this server's.
  std::string name_of_client(const http::Request& head) const {
    try {
      return client_name(access, head);
    } catch (const Refused&) {
      return {};
    }
  }

  // Throws Refused for who may not ask.
  void check_caller(const http::Request& head) const {
    if (!is_own_host(access, head)) {
      refuse(421, "the header `Host` is no name of this server", {}, "wrong_host");
    }
    if (!is_allowed_origin(access, head)) {
      refuse(403,
             "pages of this origin may not use the server, expected its own or one of "
             "--allow-origin",
             {}, "wrong_origin");
    }
  }

  RouteMatch match(const http::Request& head) const {
    if (auto found = router.find(head.method, head.path)) return std::move(*found);
    const std::string methods = router.methods_of(head.path);
    if (methods.empty()) refuse(404, "there is nothing at this path", {}, "not_found");
    refuse(405, fmt::format("the method is not one of this path's, expected {}", methods), {},
           "method_not_allowed");
  }

  // Whose request it is; empty: anybody's. Throws Refused (401).
  std::string caller(const RouteMatch& found, const http::Request& head) const {
    if (!needs_key(*found.route)) return {};
    const std::string* const ticket = head.parameter("ticket");
    if (found.route->takes_ticket && ticket != nullptr && head.header("authorization") == nullptr) {
      if (const auto job = service.find_by_ticket(found.parts.front(), *ticket)) {
        return job->spec().key;
      }
    }
    return client_name(access, head);
  }

  RouteMatch admitted(const http::Request& head) const {
    check_caller(head);
    RouteMatch found = match(head);
    caller(found, head);
    if (head.method == "POST" && has_body(head) && !is_json(head)) {
      refuse(415, "the header `Content-Type` is not application/json", {}, "wrong_content_type");
    }
    return found;
  }

  http::Response refused(const http::Request& head, const Failure& why) const {
    http::Response response = error_response(why);
    if (why.status == 405) response.headers.emplace_back("Allow", router.methods_of(head.path));
    for (auto& each : always(head)) response.headers.push_back(std::move(each));
    return response;
  }
};

Api::Api(Service& service, ApiOptions options)
    : state_(std::make_unique<State>(service, std::move(options))) {
  add_job_routes(*state_);
  add_event_routes(*state_);
  add_openai_routes(*state_);
  add_sdapi_routes(*state_);
  add_sdapi_lists(*state_);
  add_caption_routes(*state_);
  add_model_routes(*state_);
  add_state_routes(*state_);
  add_metrics_routes(*state_);
  add_page_routes(*state_);
}

Api::~Api() = default;

std::optional<http::Response> Api::admit(const http::Request& head) {
  try {
    const bool asks_before =
        head.method == "OPTIONS" && !state_->router.methods_of(head.path).empty();
    asks_before ? state_->check_caller(head) : void(state_->admitted(head));
    return std::nullopt;
  } catch (const Refused& why) {
    return state_->refused(head, why.failure);
  }
}

void Api::handle(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  const auto answer_at_once = [&](http::Response response) {
    exchange->answer(std::move(response));
  };
  CallPtr call;
  const Route* route = nullptr;
  try {
    if (request.method == "OPTIONS" && !state_->router.methods_of(request.path).empty()) {
      http::Response response = state_->preflight(request);
      for (auto& each : state_->always(request)) response.headers.push_back(std::move(each));
      return answer_at_once(std::move(response));
    }
    RouteMatch found = state_->admitted(request);
    route = found.route;
    const std::string key = state_->caller(found, request);
    call = std::make_shared<Call>(exchange, key, std::move(found.parts), state_->always(request));
  } catch (const Refused& why) {
    return answer_at_once(state_->refused(request, why.failure));
  }
  const auto work = [state = state_.get(), call, route] {
    state->guarded(call, [&] { route->answer(call); });
  };
  if (route->place == Route::Place::here) return work();
  if (state_->executor.offer(work)) return;
  Failure busy = failure(503, "the server has too many requests at once; ask again", {}, "busy");
  busy.retry_after_s = 1;
  call->fail(busy);
}

http::Response Api::refusal(int status, const std::string& sentence) {
  http::Response response = error_response(failure(status, sentence));
  response.headers.insert(response.headers.end(), kAlways.begin(), kAlways.end());
  return response;
}

void Api::done(const http::Request& head, int status, uint64_t bytes, double seconds) {
  const std::string route = route_name(*state_, head);
  state_->answers.add(route, status, seconds);
  if (!state_->options.log) return;
  // Those that machines ask for all the time would hide the others.
  const bool is_routine = route == "/health" || route == "/ready" || route == "/metrics";
  const std::string key = state_->name_of_client(head);
  state_->options.log(
      {.level = is_routine ? log::Level::debug : log::Level::info,
       .sentence = fmt::format("{} {} {} {:.1f} ms{}{}", head.method, head.path, status,
                               1e3 * seconds, key.empty() ? "" : " by ", key),
       .request_id = head.id,
       .fields = {{"method", head.method},
                  {"path", head.path},
                  {"route", route},
                  {"status", std::to_string(status)},
                  {"bytes", std::to_string(bytes)},
                  {"ms", fmt::format("{:.1f}", 1e3 * seconds)},
                  {"peer", head.peer},
                  {"key", key}}});
}

}  // namespace octet::server
