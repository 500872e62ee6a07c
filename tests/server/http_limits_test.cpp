// What the server refuses before a handler sees it: too much, too slow, malformed.
#include <gtest/gtest.h>

#include <map>

#include "server/http_host.h"

namespace octet::server::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ServerOptions options_with(Limits limits) {
  ServerOptions options;
  options.limits = limits;
  return options;
}

std::string post_head(const std::string& more) {
  return "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}

TEST(HttpLimits, RefusesALongBodyByItsLength) {
  HttpHost host(options_with({.body_bytes = 1000}));
  host.start();
  HttpClient within = host.client(), beyond = host.client(), absurd = host.client();
  EXPECT_EQ(within.post("/echo", std::string(1000, 'a')).status, 200);
  // Before a byte of the body is there.
  beyond.send(post_head("Content-Length: 1001\r\n"));
  const ClientAnswer refused = beyond.answer();
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.body, "refused: the body is larger than 1000 bytes");
  EXPECT_EQ(refused.headers.at("connection"), "close");
  EXPECT_TRUE(beyond.ends_within(5));
  absurd.send(post_head("Content-Length: 18446744073709551615\r\n"));
  EXPECT_EQ(absurd.answer().status, 413);
  EXPECT_EQ(host.handled(), 1);
  EXPECT_EQ(host.server().counts().refused, 2u);
}

TEST(HttpLimits, ARefusalReachesAClientThatIsStillSending) {
  HttpHost host(options_with({.body_bytes = 1000}));
  host.start();
  HttpClient client = host.client();
  client.send(post_head("Content-Length: 20000000\r\n"));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(client.send(std::string(8'000'000, 'a')));
  EXPECT_EQ(client.answer().status, 413);
}

TEST(HttpLimits, RefusesALongBodyInChunks) {
  HttpHost host(options_with({.body_bytes = 1000}));
  host.start();
  HttpClient client = host.client();
  client.send(post_head("Transfer-Encoding: chunked\r\n"));
  // Without an end: a server that waited for it would wait for ever.
  const std::string chunk = "100\r\n" + std::string(256, 'a') + "\r\n";
  for (int i = 0; i < 10 && client.send(chunk); ++i) {
  }
  const ClientAnswer refused = client.answer();
  EXPECT_EQ(refused.status, 413);
  EXPECT_TRUE(refused.headers.contains("x-request-id"));
  EXPECT_TRUE(client.ends_within(5));
  EXPECT_EQ(host.handled(), 0);
  EXPECT_TRUE(host.logs(413));
}

TEST(HttpLimits, RefusesALongHead) {
  HttpHost host(options_with({.header_bytes = 2000}));
  host.start();
  HttpClient client = host.client(), far_beyond = host.client();
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + std::string(2500, 'a') +
              "\r\n\r\n");
  const ClientAnswer refused = client.answer();
  EXPECT_EQ(refused.status, 431);
  EXPECT_EQ(refused.body, "refused: the request's head is larger than 2000 bytes");
  far_beyond.send("GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + std::string(200'000, 'a'));
  EXPECT_EQ(far_beyond.answer().status, 431);
  EXPECT_EQ(host.handled(), 0);
}

TEST(HttpLimits, AsksForAdmissionBeforeTheBody) {
  ServerOptions options;
  options.admit = [](const Request& head) -> std::optional<Response> {
    EXPECT_TRUE(head.body.empty());
    if (head.path == "/fails") throw 1;
    if (head.header("authorization")) return std::nullopt;
    return text_response(401, "no key");
  };
  HttpHost host(options);
  host.start();
  HttpClient client = host.client(), large = host.client(), asking = host.client();
  // A small body is dropped, and the connection goes on.
  EXPECT_EQ(client.post("/echo", "secret").body, "no key");
  EXPECT_EQ(client.get("/").status, 401);
  client.send(post_head("Authorization: Bearer key\r\nContent-Length: 2\r\n") + "ok");
  EXPECT_EQ(client.answer().body, "POST ok");
  // A large one is not waited for, nor one that the client has not sent yet.
  large.send(post_head("Content-Length: 900000\r\n"));
  EXPECT_EQ(large.answer().status, 401);
  asking.send(post_head("Content-Length: 10\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(asking.answer().status, 401);
  EXPECT_TRUE(asking.ends_within(5));
  EXPECT_EQ(host.handled(), 1);
  EXPECT_EQ(host.client().get("/fails").status, 500);
}

TEST(HttpLimits, EndsRequestsThatDribble) {
  HttpHost host(options_with({.idle_s = 30, .request_s = 1}));
  host.start();
  const auto start = steady_clock::now();
  HttpClient head = host.client(), body = host.client(), waits = host.client();
  body.send(post_head("Content-Length: 1000\r\n"));
  waits.send("");
  bool head_open = true, body_open = true;
  for (int i = 0; (head_open || body_open) && seconds_since(start) < 5; ++i) {
    head_open = head_open && head.send(std::string(1, "GET / HTTP/1.1"[std::min(i, 13)])) &&
                !head.ends_within(0.001);
    body_open = body_open && body.send("a") && !body.ends_within(0.001);
    std::this_thread::sleep_for(milliseconds(30));
  }
  EXPECT_FALSE(head_open);
  EXPECT_FALSE(body_open);
  EXPECT_GT(seconds_since(start), 0.9);
  EXPECT_FALSE(waits.ends_within(0.01));
  EXPECT_EQ(host.handled(), 0);
  EXPECT_EQ(host.server().counts().refused, 2u);
}

TEST(HttpLimits, SaysThatARequestWasTooSlow) {
  HttpHost host(options_with({.request_s = 1}));
  host.start();
  HttpClient client = host.client();
  client.send(post_head("Content-Length: 10\r\n") + "abc");
  const ClientAnswer refused = client.answer();
  EXPECT_EQ(refused.status, 408);
  EXPECT_EQ(refused.body, "refused: the request took longer than 1 seconds to arrive");
  EXPECT_TRUE(host.logs(408));
}

TEST(HttpLimits, EndsIdleConnectionsAndNotThoseThatWait) {
  HttpHost host(options_with({.idle_s = 1, .request_s = 1}));
  host.on("/later", [&](const std::shared_ptr<Exchange>& exchange) {
    host.later([exchange] {
      std::this_thread::sleep_for(milliseconds(1800));
      exchange->answer(text_response(200, "late"));
    });
  });
  host.start();
  HttpClient silent = host.client(), used = host.client(), waits = host.client();
  waits.send(get_request("/later"));
  EXPECT_EQ(used.get("/").status, 200);
  EXPECT_TRUE(silent.ends_within(5));
  EXPECT_TRUE(used.ends_within(5));
  EXPECT_EQ(waits.answer().body, "late");
}

TEST(HttpLimits, EndsAnAnswerThatNobodyReads) {
  std::atomic<int> gone{0};
  HttpHost host(options_with({.answer_s = 1}));
  host.on("/large", [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->on_gone([&] { ++gone; });
    exchange->answer(
        {.status = 200, .headers = {}, .body = bytes_of(std::string(30'000'000, 'x'))});
  });
  host.start();
  HttpClient client = host.client();
  client.set_small_window();
  client.send(get_request("/large"));
  EXPECT_TRUE(comes_true([&] { return gone == 1; }));
  EXPECT_EQ(host.server().counts().disconnected, 1u);
  EXPECT_TRUE(comes_true([&] { return host.server().counts().connections == 0; }));
}

TEST(HttpLimits, EndsTheSlowestReadersWhereTogetherTheyHoldTooMuch) {
  constexpr uint64_t kSize = 30'000'000;
  std::map<std::string, std::atomic<bool>> gone;
  const Bytes shared = bytes_of(std::string(kSize, 'x')), other = bytes_of(std::string(kSize, 'y'));
  HttpHost host(options_with({.unsent_bytes = kSize * 4 / 3}));
  for (const auto& [path, body] :
       {std::pair("/first", shared), {"/second", shared}, {"/third", other}}) {
    host.on(path, [&flag = gone[path], body = body](const std::shared_ptr<Exchange>& exchange) {
      exchange->on_gone([&] { flag = true; });
      exchange->answer({.status = 200, .headers = {}, .body = body});
    });
  }
  host.start();
  std::vector<HttpClient> slow;
  const auto ask = [&](const std::string& path) {
    slow.push_back(host.client());
    slow.back().set_small_window();
    slow.back().send(get_request(path));
  };
  const auto unsent = [&] { return host.server().counts().unsent_bytes; };
  ask("/first");
  EXPECT_TRUE(comes_true([&] { return unsent() == kSize; }));
  ask("/second");
  EXPECT_TRUE(comes_true([&] { return host.handled() == 2; }));
  std::this_thread::sleep_for(milliseconds(300));  // the clock has looked
  EXPECT_EQ(unsent(), kSize) << "one body in two answers counts once";
  EXPECT_FALSE(gone["/first"]);
  ask("/third");
  EXPECT_TRUE(comes_true([&] { return gone["/first"] && gone["/second"]; }));
  EXPECT_TRUE(comes_true([&] { return unsent() == kSize; }));
  EXPECT_FALSE(gone["/third"]);
  EXPECT_EQ(host.client().get("/").status, 200);
  slow.clear();
  EXPECT_TRUE(comes_true([&] { return unsent() == 0; }));
}

TEST(HttpLimits, CountsConnectionsOfAnAddress) {
  HttpHost host(options_with({.connections_per_address = 3}));
  host.start();
  std::vector<HttpClient> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(host.client());
  for (HttpClient& client : clients) EXPECT_EQ(client.get("/").status, 200);
  HttpClient fourth = host.client();
  EXPECT_EQ(fourth.answer().status, 503);
  EXPECT_TRUE(fourth.ends_within(5));
  HttpClient neighbour(host.server().port(), "127.0.0.2");
  EXPECT_EQ(neighbour.get("/").status, 200);
  EXPECT_EQ(host.server().counts().refused, 1u);
  clients.pop_back();
  EXPECT_TRUE(comes_true([&] { return host.server().counts().connections == 3; }));
  EXPECT_EQ(host.client().get("/").status, 200);
}

TEST(HttpLimits, CountsConnections) {
  HttpHost host(options_with({.connections = 2}));
  host.start();
  HttpClient first = host.client(), second = host.client();
  EXPECT_EQ(first.get("/").status, 200);
  EXPECT_EQ(second.get("/").status, 200);
  EXPECT_EQ(host.client().answer().status, 503);
  EXPECT_EQ(first.get("/").status, 200);
}

TEST(HttpLimits, IdleConnectionsHoldNoThread) {
  HttpHost host;
  host.start();
  HttpClient client = host.client();
  EXPECT_EQ(client.get("/").status, 200);
  const int threads = count_threads();
  std::vector<HttpClient> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(host.client());
    if (i % 2 == 0) idle.back().send("GET / HT");
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.get("/").status, 200);
  EXPECT_TRUE(comes_true([&] { return host.server().counts().connections == 201; }));
  EXPECT_EQ(count_threads(), threads);
}

struct Garbage {
  const char* name;
  std::string bytes;
  int status;  // 0: the connection just ends
};

TEST(HttpLimits, NeverHandlesWhatIsMalformed) {
  using namespace std::string_literals;
  const std::string host_line = "Host: localhost\r\n";
  const std::vector<Garbage> garbage = {
      {"no request", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"s, 0},
      {"one word", "GET\r\n\r\n", 0},
      {"no version", "GET /\r\n\r\n", 400},
      {"another protocol", "GET / ICAP/1.0\r\n\r\n", 400},
      {"another version", "GET / HTTP/2.0\r\n\r\n", 505},
      {"a space in the address", "GET /a b HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"no slash", "GET a HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"a zero byte", "GET /%00 HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"no UTF-8", "GET /%ff HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"an overlong slash", "GET /%c0%af HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"half an escape", "GET /%4 HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"a query that is no UTF-8", "GET /?a=%80 HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\n" + host_line + host_line + "\r\n", 400},
      {"no colon", "GET / HTTP/1.1\r\nHost localhost\r\n\r\n", 400},
      {"a space before the colon", "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400},
      {"a control character", "GET / HTTP/1.1\r\n" + host_line + "X: a\x01\r\n\r\n", 400},
      {"a lone carriage return", "GET / HTTP/1.1\r\n" + host_line + "X: a\rB: c\r\n\r\n", 400},
      {"a method that is none", "G{T / HTTP/1.1\r\n" + host_line + "\r\n", 400},
      {"no length", post_head("Content-Length: ten\r\n") + "0123456789", 400},
      {"a negative length", post_head("Content-Length: -1\r\n"), 400},
      {"a signed length", post_head("Content-Length: +5\r\n") + "01234", 400},
      {"two lengths", post_head("Content-Length: 5\r\nContent-Length: 6\r\n") + "012345", 400},
      {"length and chunks",
       post_head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
      {"an unknown encoding", post_head("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", 501},
      {"no chunk", post_head("Transfer-Encoding: chunked\r\n") + "xyz\r\n", 400},
      {"a chunk without end", post_head("Transfer-Encoding: chunked\r\n") + "1\r\nab\r\n", 400},
      {"half a body", post_head("Content-Length: 50\r\n") + "half", 0},
      {"half a head", "POST /echo HTTP/1.1\r\nContent-Le", 0},
  };
  HttpHost host;
  host.start();
  for (const Garbage& each : garbage) {
    HttpClient client = host.client();
    client.send(each.bytes);
    client.close_own_side();
    const std::string answer = client.read_to_end();
    const int status = answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
    EXPECT_EQ(status, each.status) << each.name << ": " << answer;
  }
  EXPECT_EQ(host.handled(), 0);
  EXPECT_EQ(host.client().get("/").status, 200);
  EXPECT_TRUE(comes_true([&] { return host.server().counts().connections == 0; }));
}

}  // namespace
}  // namespace octet::server::http
