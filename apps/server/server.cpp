#include "server/server.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "formats/json_value.h"
#include "octet/error.h"
#include "server/routes/access.h"
#include "server/routes/routes.h"

namespace octet::server {
namespace {

constexpr auto kLookAtSignals = std::chrono::milliseconds(100);

std::string utc_now() {
  const double now = now_s();
  const auto whole = static_cast<std::time_t>(now);
  std::tm parts = {};
  ::gmtime_r(&whole, &parts);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>((now - static_cast<double>(whole)) * 1000));
  return text;
}

std::string as_json(const LogLine& line) {
  nlohmann::ordered_json json{
      {"time", utc_now()}, {"level", word_of(line.level)}, {"message", line.sentence}};
  if (!line.request_id.empty()) json["request"] = line.request_id;
  for (const auto& [name, value] : line.fields) json[name] = value;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string as_text(const LogLine& line) {
  std::string text = utc_now() + " " + line.sentence;
  if (!line.request_id.empty()) text += " " + line.request_id;
  // What clients send may not forge a line of its own.
  for (char& each : text) {
    if (static_cast<unsigned char>(each) < ' ') each = '?';
  }
  return text;
}

// One line at a time, from whichever thread.
class Log {
 public:
  explicit Log(const ServeHooks& hooks) : hooks_(hooks) {}

  void operator()(const LogLine& line) {
    if (line.level < hooks_.lowest) return;
    const std::lock_guard lock(mutex_);
    if (hooks_.log_line) hooks_.log_line(hooks_.json_log ? as_json(line) : as_text(line));
  }

 private:
  const ServeHooks& hooks_;
  std::mutex mutex_;
};

// Of a model that does not stay on its device as a whole.
void log_plan(const EngineInfo& info, Log& log) {
  if (info.streamed_bytes == 0) return;
  const auto gigabytes = [](uint64_t bytes) {
    return fmt::format("{:.2f}", static_cast<double>(bytes) * 1e-9);
  };
  uint64_t staying = 0;
  for (const PartPlace& part : info.plan) staying += part.device_bytes;
  log({.sentence = fmt::format("{} GB of weights stay on the device, and {} GB come to it in each "
                               "step",
                               gigabytes(staying), gigabytes(info.streamed_bytes)),
       .fields = {{"device_gb", gigabytes(staying)},
                  {"streamed_gb", gigabytes(info.streamed_bytes)}}});
}

LogLine line_of(const Job& job) {
  const JobView view = job.view();
  const double begun = view.started_at > 0 ? view.started_at : view.ended_at;
  const std::string state(word_of(view.state));
  const std::string pictures = std::to_string(view.pictures.size());
  const std::string waited = fmt::format("{:.3f}", begun - view.created_at);
  const std::string took = fmt::format("{:.3f}", view.ended_at - begun);
  const std::string why = view.failure ? view.failure->message : "";
  return {.sentence = fmt::format("job {} {}{}{}: {} of {} pictures, waited {} s, took {} s",
                                  view.id, state, why.empty() ? "" : ", ", why, pictures,
                                  job.spec().picture.images, waited, took),
          .request_id = job.spec().request_id,
          .fields = {{"job", view.id},
                     {"state", state},
                     {"error", why},
                     {"pictures", pictures},
                     {"waited_s", waited},
                     {"took_s", took},
                     {"worker", view.worker},
                     {"key", job.spec().key}}};
}

std::string url_of(const ServeOptions& options, uint16_t port) {
  const bool is_six = options.address.find(':') != std::string::npos;
  return (options.certificate.empty() ? "http://" : "https://") +
         (is_six ? "[" + options.address + "]" : options.address) + ":" + std::to_string(port);
}

bool is_loopback(const std::string& address) {
  return address == "::1" || address == "localhost" || address.starts_with("127.");
}

// A page that makes a browser believe this server is its own (DNS rebinding) gets nothing without a
// key; and whoever lets everybody in has said so. Only the server that nobody else can reach, and
// that therefore asks for no key, has to know its names.
std::vector<std::string> hosts_of(const ServeOptions& options) {
  if (!is_loopback(options.address) || !options.keys.empty()) return {"*"};
  std::vector<std::string> hosts = {options.address};
  if (!options.public_url.empty()) {
    std::string host = options.public_url.substr(options.public_url.find("//") + 2);
    hosts.push_back(host_name(host.substr(0, host.find('/'))));
  }
  return hosts;
}

}  // namespace

void serve(const ServeOptions& options, const ServeHooks& hooks) {
  Log log(hooks);
  ServiceOptions of_service = options.service;
  of_service.log = [&log](log::Level level, const std::string& line, const std::string& request) {
    log({.level = level, .sentence = line, .request_id = request});
  };
  of_service.ended = [&log](const Job& job) { log(line_of(job)); };
  std::shared_ptr<KeyFile> keys;
  if (!options.keys.empty()) {
    keys = std::make_shared<KeyFile>(options.keys, [&log](const std::string& sentence) {
      log({.level = log::Level::warning, .sentence = sentence});
    });
    of_service.weight = [keys](const std::string& key) { return keys->weight_of(key); };
  }
  Service service(std::move(of_service));
  http::HttpServer* running = nullptr;
  std::mutex running_mutex;
  Api api(service, {.keys = keys,
                    .hosts = hosts_of(options),
                    .origins = options.allowed_origins,
                    .public_address = options.public_url,
                    .tls = !options.certificate.empty(),
                    .loopback = is_loopback(options.address),
                    .reads_words = !options.prompt_is_wrapped,
                    .connections =
                        [&] {
                          const std::lock_guard lock(running_mutex);
                          return running != nullptr ? running->counts() : http::ServerCounts{};
                        },
                    .log = [&log](const LogLine& line) { log(line); }});
  http::HttpServer server(
      {.address = options.address,
       .port = options.port,
       .certificate = options.certificate,
       .private_key = options.private_key,
       .limits = options.limits,
       .admit = [&](const http::Request& head) { return api.admit(head); },
       .handle = [&](auto exchange) { api.handle(exchange); },
       .refusal = [&](int status, const std::string& why) { return api.refusal(status, why); },
       .done = [&](const http::Request& head, int status, uint64_t bytes,
                   double seconds) { api.done(head, status, bytes, seconds); }});
  {
    const std::lock_guard lock(running_mutex);
    running = &server;
  }
  hooks.listening(url_of(options, server.port()));
  bool was_ready = false;
  while (!hooks.stop()) {
    if (!was_ready && service.is_ready()) {
      was_ready = true;
      log_plan(service.info(), log);
      log({.sentence = "ready"});
    }
    if (service.has_failed()) break;
    std::this_thread::sleep_for(kLookAtSignals);
  }
  const bool failed = service.has_failed();
  if (!failed) {
    log({.sentence = "ending: no new jobs; those under way may take " +
                     std::to_string(static_cast<int>(options.grace_s)) + " s more"});
    const auto ended = [&] {
      const ServiceCounts counts = service.counts();
      return counts.completed + counts.failed + counts.cancelled;
    };
    const uint64_t before = ended();
    service.drain(options.grace_s);
    // Their clients were told nothing yet, and results are in memory alone.
    if (ended() > before)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.linger_s));
  }
  server.stop(/*seconds=*/2);
  {
    const std::lock_guard lock(running_mutex);
    running = nullptr;
  }
  if (failed) throw Error("serve: no device has a model: " + service.failure());
  log({.sentence = "ended"});
}

}  // namespace octet::server
