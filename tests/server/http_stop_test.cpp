// The end of a server, while something is under way.
#include <gtest/gtest.h>

#include "server/http_host.h"

namespace octet::server::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(HttpStop, WaitsForAnswersThatAreUnderWay) {
  std::atomic<bool> has_arrived{false};
  HttpHost host;
  host.on("/later", [&](const std::shared_ptr<Exchange>& exchange) {
    has_arrived = true;
    host.later([exchange] {
      std::this_thread::sleep_for(milliseconds(200));
      exchange->answer(text_response(200, "in time"));
    });
  });
  host.start();
  HttpClient idle = host.client(), client = host.client();
  EXPECT_EQ(idle.get("/").status, 200);
  client.send(get_request("/later"));
  ASSERT_TRUE(comes_true([&] { return has_arrived.load(); }));
  const auto start = steady_clock::now();
  host.server().stop(10);
  EXPECT_LT(seconds_since(start), 8);
  const ClientAnswer answer = client.answer();
  EXPECT_EQ(answer.body, "in time");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(idle.ends_within(5));
  EXPECT_TRUE(client.ends_within(5));
}

TEST(HttpStop, ClosesWhatIsLeft) {
  std::vector<std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  std::atomic<int> gone{0}, arrived{0};
  HttpHost host;
  host.on("/events", [&](std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([&] { ++gone; });
    streams.push_back(exchange->stream(200, {}));
    exchanges.push_back(std::move(exchange));
    ++arrived;
  });
  host.on("/later", [&](std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([&] { ++gone; });
    exchanges.push_back(std::move(exchange));
    ++arrived;
  });
  host.start();
  HttpClient reading = host.client(), waiting = host.client();
  reading.send(get_request("/events"));
  EXPECT_TRUE(comes_true([&] { return arrived == 1; }));
  waiting.send(get_request("/later"));
  EXPECT_TRUE(comes_true([&] { return arrived == 2; }));
  const auto start = steady_clock::now();
  host.server().stop(0.1);
  EXPECT_GT(seconds_since(start), 0.09);
  EXPECT_LT(seconds_since(start), 8);
  EXPECT_EQ(gone, 2);
  EXPECT_TRUE(reading.ends_within(5));
  EXPECT_TRUE(waiting.ends_within(5));
  // What handlers still hold does nothing, with or without a server.
  const auto use_all = [&] {
    for (const auto& stream : streams) {
      stream->write("x");
      EXPECT_EQ(stream->waiting(), 0u);
      stream->end();
    }
    for (const auto& exchange : exchanges) {
      exchange->answer(text_response(200, "x"));
      exchange->stream(200, {})->write("x");
    }
  };
  use_all();
  host.destroy_server();
  use_all();
  EXPECT_EQ(gone, 2);
  EXPECT_EQ(exchanges[0]->request().path, "/events");
}

TEST(HttpStop, RefusesNewConnections) {
  HttpHost host;
  host.start();
  HttpClient before = host.client();
  EXPECT_EQ(before.get("/").status, 200);
  const uint16_t port = host.server().port();
  host.server().stop_listening();
  host.server().stop_listening();
  EXPECT_EQ(before.get("/").status, 200);
  // The port is free for a successor.
  ServerOptions options;
  options.port = port;
  HttpHost successor(options);
  successor.start();
  EXPECT_EQ(successor.client().get("/").status, 200);
  EXPECT_EQ(host.handled(), 2);
}

TEST(HttpStop, AtAnyTime) {
  for (int round = 0; round < 25; ++round) {
    std::atomic<bool> ends{false};
    std::atomic<int> threads{0};
    HttpHost host;
    host.on("/events", [&](const std::shared_ptr<Exchange>& exchange) {
      if (threads++ >= 8) return exchange->answer(text_response(200, "enough"));
      host.later([&, stream = exchange->stream(200, {})] {
        while (!ends) {
          stream->write("data: x\n\n");
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
      });
    });
    host.on("/later", [&](const std::shared_ptr<Exchange>& exchange) {
      if (threads++ >= 8) return exchange->answer(text_response(200, "enough"));
      host.later([exchange] { exchange->answer(text_response(200, "later")); });
    });
    host.start();
    std::vector<HttpClient> clients;
    for (int i = 0; i < 12; ++i) {
      clients.push_back(host.client());
      clients.back().send(get_request(i % 2 == 0 ? "/events" : "/later"));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(round * 100));
    host.server().stop(0);
    ends = true;
  }
}

}  // namespace
}  // namespace octet::server::http
