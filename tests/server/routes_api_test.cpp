// The API over a service that has no model: what is answered all the same, and what is not said.
#include <gtest/gtest.h>

#include <future>

#include "server/routes/json.h"
#include "server/routes/routes.h"

namespace octet::server {
namespace {

constexpr const char* kSecretFolder = "/nowhere/secret-model";

// Keeps the answer for the test.
class KeptExchange : public http::Exchange {
 public:
  explicit KeptExchange(http::Request request) : request_(std::move(request)) {}
  const http::Request& request() const override { return request_; }
  void answer(http::Response response) override { answer_.set_value(std::move(response)); }
  std::shared_ptr<http::Stream> stream(int, http::Headers) override { return nullptr; }
  void on_gone(std::function<void()>) override {}
  http::Response wait() { return answer_.get_future().get(); }

 private:
  const http::Request request_;
  std::promise<http::Response> answer_;
};

class ApiWithoutModel : public testing::Test {
 protected:
  ApiWithoutModel() : service_(options()), api_(service_, {.log = [](const LogLine&) {}}) {
    while (!service_.has_failed()) std::this_thread::yield();
  }

  static ServiceOptions options() {
    ServiceOptions made;
    made.model_id = "test";
    made.model.model = kSecretFolder;
    made.devices = {"cpu"};
    made.read_prompt = [](const std::string& text) { return ReadPrompt{.caption = text}; };
    made.warm_up = false;
    made.log = [](log::Level, const std::string&, const std::string&) {};
    return made;
  }

  http::Response ask(const std::string& method, const std::string& path,
                     const std::string& body = "") {
    http::Headers headers{{"host", "localhost"}};
    if (!body.empty()) {
      headers.emplace_back("content-type", "application/json");
      headers.emplace_back("content-length", std::to_string(body.size()));
    }
    http::Request request{.id = "req-7", .method = method, .path = path, .headers = headers};
    if (auto refused = api_.admit(request)) return std::move(*refused);
    request.body = body;
    const auto exchange = std::make_shared<KeptExchange>(std::move(request));
    api_.handle(exchange);
    return exchange->wait();
  }

  Service service_;
  Api api_;
};

Json error_of(const http::Response& response) { return Json::parse(*response.body)["error"]; }

TEST_F(ApiWithoutModel, LivesAndIsNotReady) {
  EXPECT_EQ(ask("GET", "/health").status, 200);
  const http::Response ready = ask("GET", "/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(Json::parse(*ready.body)["status"], "failed");
}

TEST_F(ApiWithoutModel, NeverTellsWhereItsModelIs) {
  const std::pair<const char*, const char*> posts[] = {
      {"/v1/jobs", "{\"prompt\": \"a\"}"},
      {"/v1/images/generations", "{\"prompt\": \"a\"}"},
      {"/sdapi/v1/txt2img", "{\"prompt\": \"a\"}"}};
  for (const auto& [path, body] : posts) {
    const http::Response refused = ask("POST", path, body);
    EXPECT_EQ(refused.status, 503) << path;
    EXPECT_EQ(refused.body->find("secret"), std::string::npos) << *refused.body;
  }
  for (const char* path : {"/ready", "/v1/models", "/metrics", "/sdapi/v1/options", "/v1/jobs"}) {
    EXPECT_EQ(ask("GET", path).body->find("secret"), std::string::npos) << path;
  }
}

TEST_F(ApiWithoutModel, FindsAFaultOfTheRequestAllTheSame) {
  EXPECT_EQ(error_of(ask("POST", "/v1/jobs", "{"))["type"], "invalid_request_error");
  EXPECT_EQ(error_of(ask("POST", "/v1/jobs", "{\"prompt\": 3}"))["param"], "prompt");
  EXPECT_EQ(error_of(ask("POST", "/v1/captions/check", "{}"))["param"], "caption");
}

TEST_F(ApiWithoutModel, KnowsPathsAndMethods) {
  EXPECT_EQ(ask("GET", "/v1").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/jobs").status, 405);
  EXPECT_EQ(ask("OPTIONS", "/v1/jobs").status, 204);
  EXPECT_EQ(ask("OPTIONS", "/v1").status, 404);
  EXPECT_EQ(ask("GET", "/v1/jobs/test-1").status, 404);
}

TEST_F(ApiWithoutModel, DescribesItselfAsJson) {
  const http::Response described = ask("GET", "/openapi.json");
  EXPECT_EQ(described.status, 200);
  EXPECT_EQ(Json::parse(*described.body)["openapi"], "3.1.0");
}

TEST_F(ApiWithoutModel, RefusalsOfTheTransportHaveTheSameForm) {
  const http::Response refused = api_.refusal(413, "the body is too large");
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(error_of(refused)["message"], "the body is too large");
}

}  // namespace
}  // namespace octet::server
