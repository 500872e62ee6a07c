// libFuzzer target: whatever a client sends as headers and body, each route either refuses it with
// 400 or 401 and one sentence, or reads a request within the limits. An input is the lines of a
// head (names and values of headers, and a path with its query), an empty line, and a body.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "models/image_size.h"
#include "octet/picture_files.h"
#include "server/http/head.h"
#include "server/routes/access.h"
#include "server/routes/job_fields.h"
#include "server/routes/openai.h"
#include "server/routes/sdapi.h"
#include "server/routes/sse.h"

// Of the library the readers use these two alone.
octet::PictureSize octet::parse_size(const std::string& text) {
  return models::parse_image_size(text);
}
bool octet::can_encode(PictureFormat format) { return format != PictureFormat::webp; }

namespace {

using namespace octet::server;  // NOLINT: this file is about it

void demand(bool condition) {
  if (!condition) std::abort();
}

class GivenExchange : public http::Exchange {
 public:
  explicit GivenExchange(http::Request request) : request_(std::move(request)) {}
  const http::Request& request() const override { return request_; }
  void answer(http::Response) override {}
  std::shared_ptr<http::Stream> stream(int, http::Headers) override { return nullptr; }
  void on_gone(std::function<void()>) override {}

 private:
  const http::Request request_;
};

// Runs what reads; what it refuses must be an answer that can be sent.
void read(const std::function<void()>& reader) {
  try {
    reader();
  } catch (const Refused& refused) {
    const Failure& why = refused.failure;
    demand(why.status == 400 || why.status == 401);
    demand(!why.message.empty() && why.message.find('\n') == why.message.npos);
    const http::Response answer = error_response(why);
    demand(Json::accept(*answer.body));
  }
}

RequestLimits limits() {
  RequestLimits limits;
  limits.caption_bytes = 1000;
  return limits;
}

void check_spec(const JobSpec& spec) {
  const octet::PictureRequest& picture = spec.picture;
  demand(spec.prompt.empty() != picture.caption.empty());
  demand(spec.prompt.size() + picture.negative.size() <= 2 * limits().caption_bytes);
  demand(picture.images >= 1 && picture.steps >= 0 && picture.steps <= limits().steps);
  demand(picture.size.width >= 0 && picture.size.height >= 0);
  demand(picture.guidance.size() <= static_cast<size_t>(limits().steps));
  demand(spec.preview_every >= 0 && spec.quality >= 1 && spec.quality <= 100);
}

void check_ignored(const std::vector<std::string>& names) {
  demand(http::is_header_value(ignored_header(names)));
}

octet::EngineInfo engine_info() {
  octet::EngineInfo info;
  info.presets = {{.name = "default", .official_name = "V4", .steps = 20},
                  {.name = "turbo", .steps = 12}};
  info.token_side = 16;
  info.takes_negative = true;
  return info;
}

const AccessRules& rules() {
  static const AccessRules* const only = [] {
    const std::string path = std::filesystem::temp_directory_path() / "octet-fuzz-keys";
    std::ofstream(path) << "anna k-3f9a1c0d5e7b2846ffe1\n";
    auto* made = new AccessRules;
    made->keys = std::make_shared<KeyFile>(path, [](const std::string&) {});
    made->hosts = {"localhost"};
    made->origins = {"https://example.org"};
    return made;
  }();
  return *only;
}

http::Request request_of(std::string_view text) {
  http::Request request{.id = "req-fuzz", .method = "POST", .path = "/v1/jobs"};
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) break;
    const size_t colon = line.find(": ");
    if (line.starts_with('/')) {
      if (http::read_target(line, request)) return request;
    } else if (colon != line.npos && http::is_header_value(line.substr(colon + 2))) {
      request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    }
  }
  request.body = text;
  return request;
}

void read_heads(const http::Request& request) {
  read([&] { last_event_id(request); });
  read([&] { demand(client_name(rules(), request) == "anna"); });
  is_own_host(rules(), request);
  if (is_allowed_origin(rules(), request)) {
    for (const auto& [name, value] : cors_headers(rules(), request)) {
      demand(http::is_header_value(value));
    }
  }
}

void read_bodies(const Call& call) {
  read([&] {
    const Json body = call.body();
    Fields fields(body);
    JobSpec spec = spec_of(call);
    read_caption_fields(fields, limits(), /*recognize=*/false, spec);
    read_picture_fields(fields, limits(), spec);
    fields.refuse_unknown();
    check_spec(spec);
  });
  read([&] {
    const ImageRequest request = read_image_request(limits(), "demo", engine_info(), call);
    check_spec(request.spec);
    check_ignored(request.ignored);
    demand(request.partial_images >= 0 && request.partial_images <= 3);
  });
  read([&] {
    const TextToImage request = read_text_to_image(limits(), engine_info(), call);
    check_spec(request.spec);
    check_ignored(request.ignored);
    demand(Json::accept(to_line(request.parameters)));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto exchange =
      std::make_shared<GivenExchange>(request_of({reinterpret_cast<const char*>(data), size}));
  read_heads(exchange->request());
  read_bodies(Call(exchange, "anna", {}, {}));
  return 0;
}
