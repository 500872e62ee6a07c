// hub: what goes over a connection, and which connections are given up. Each case talks to a server
// of its own on the loopback interface.
#include "hub/http.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "formats/error_message.h"
#include "hub/remote.h"

namespace octet::hub {
namespace {

using test::error_of;

// Answers one connection after another with what `answer` sends.
class Server {
 public:
  using Answer = std::function<void(const Server& server, int socket)>;
  explicit Server(Answer answer) : answer_(std::move(answer)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    socklen_t length = sizeof(address);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  std::string url(const std::string& user = "") const {
    return fmt::format("http://{}127.0.0.1:{}", user, port_);
  }
  const std::string& request() const { return request_; }  // the last one, once it is answered
  // False when nobody listens any more.
  bool send(int socket, std::string_view text) const {
    return !stopping_ && ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) ==
                             static_cast<ssize_t>(text.size());
  }

 private:
  void serve() {
    for (int socket = 0; (socket = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      std::string request;
      char bytes[4096];
      while (request.find("\r\n\r\n") == request.npos) {
        const ssize_t got = ::recv(socket, bytes, sizeof(bytes), 0);
        if (got <= 0) break;
        request.append(bytes, static_cast<size_t>(got));
      }
      request_ = request;
      answer_(*this, socket);
      ::close(socket);
    }
  }

  Answer answer_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::string request_;
  std::thread thread_;
};

void send_nothing(const Server& server, int socket) {
  server.send(socket, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

// Four bytes now and then, some hundred a second.
void drip(const Server& server, int socket) {
  server.send(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  while (server.send(socket, "drip")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

class Http : public testing::Test {
 protected:
  void SetUp() override {
    ::alarm(120);  // a connection that is held for ever ends with a signal
    try {
      require_http();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override { ::alarm(0); }

  static std::string get(const HttpRequest& request, HttpSettings settings = {}) {
    std::string body;
    HttpConnection connection(std::move(settings));
    connection.send(
        request, [](const HttpAnswer&) { return true; },
        [&](std::span<const std::byte> bytes) {
          body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        });
    return body;
  }
};

TEST_F(Http, ADrippingServerIsGivenUp) {
  const Server server(drip);
  EXPECT_THROW(get({.url = server.url()}, {.idle_seconds = 1, .is_wanted = {}}), Transient);
}

// Many connections share a slow network: as long as enough comes over all of them, none is dropped.
TEST_F(Http, ASlowShareOfTheNetworkIsNotGivenUp) {
  const Server server([](const Server& self, int socket) {
    self.send(socket, "HTTP/1.1 200 OK\r\nContent-Length: 300\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 75 && self.send(socket, "drip"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  int64_t of_all = 0;
  const HttpSettings settings{
      .idle_seconds = 1, .is_wanted = {}, .received = [&] { return of_all += 1'000'000; }};
  EXPECT_EQ(get({.url = server.url()}, settings).size(), 300u);
}

TEST_F(Http, AnAnswerMayHaveALimitAsAWhole) {
  const Server server(drip);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(get({.url = server.url(), .most_seconds = 1}), Transient);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
}

// libcurl itself says where a redirect leads only when its body was read to the end.
TEST_F(Http, ARedirectWithALongBodyIsFollowed) {
  const Server server([](const Server& self, int socket) {
    if (self.request().starts_with("GET /next?a=1 ")) {
      self.send(socket, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere");
      return;
    }
    self.send(socket,
              "HTTP/1.1 302 Found\r\nLocation: /next?a=1\r\nContent-Length: 500000\r\n\r\n" +
                  std::string(500'000, 'x'));
  });
  EXPECT_EQ(get({.url = server.url() + "/first"}), "here");
}

// --- names and passwords ---

TEST_F(Http, CredentialsAreTakenOutOfAnAddress) {
  const Address address = address_of("https://user:se%40c%2Fret@host:8080/hub//");
  EXPECT_EQ(address.url, "https://host:8080/hub");
  EXPECT_EQ(address.user, "user");
  EXPECT_EQ(address.password, "se@c/ret");
  EXPECT_EQ(address_of("https://huggingface.co").url, "https://huggingface.co");
  EXPECT_EQ(address_of("https://huggingface.co").user, "");
}

TEST_F(Http, CredentialsGoToTheirHostAlone) {
  const Server server(send_nothing);
  HttpRequest request{.url = server.url(), .user = "user", .password = "secret"};
  request.home = server.url();
  get(request);
  EXPECT_NE(server.request().find("Authorization: Basic dXNlcjpzZWNyZXQ="), std::string::npos);
  request.home = "http://127.0.0.1:1";
  get(request);
  EXPECT_EQ(server.request().find("Authorization"), std::string::npos);
  request.home = server.url();
  request.token = "hf_token";
  get(request);
  EXPECT_NE(server.request().find("Authorization: Bearer hf_token"), std::string::npos);
  EXPECT_EQ(server.request().find("Basic"), std::string::npos);
}

TEST_F(Http, NoSentenceShowsAPassword) {
  const Server missing(send_nothing);
  const Server elsewhere([](const Server& self, int socket) {
    self.send(socket,
              "HTTP/1.1 302 Found\r\nLocation: ftp://user:secret@host/x?secret\r\n"
              "Content-Length: 0\r\nConnection: close\r\n\r\n");
  });
  std::vector<std::string> sentences;
  const auto listing_from = [&](const std::string& endpoint) {
    sentences.push_back(error_of([&] {
      const Remote remote(endpoint, "", "owner/name", "main");
      HttpConnection connection(HttpSettings{});
      remote.list(connection);
    }));
  };
  for (const std::string user : {"user:secret@", "secret@", ":secret@", "user:se%2Fcret@"}) {
    listing_from(missing.url(user));
    listing_from(elsewhere.url(user));
    listing_from("http://" + user + "127.0.0.1:1");
    listing_from("http://" + user + "no such host");
    listing_from("ftp://" + user + "host");
    listing_from(user + "host");
  }
  // Characters that do not belong into a password as they are.
  for (const char* user : {"user:a/secret@", "user:a?secret@", "user:12/secret@", "user:#secret@",
                           "user:@secret@", "user:secret/@"}) {
    listing_from(missing.url(user));
    listing_from("http://" + std::string(user));
  }
  for (const std::string& sentence : sentences) {
    EXPECT_FALSE(sentence.empty());
    for (const char* part : {"secret", "cret", "user"}) {
      EXPECT_EQ(sentence.find(part), sentence.npos) << sentence;
    }
  }
}

}  // namespace
}  // namespace octet::hub
