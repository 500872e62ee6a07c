// Answers in pieces, and clients that leave before the end of theirs.
#include <gtest/gtest.h>

#include "server/http_host.h"

namespace octet::server::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Handlers leave their streams here.
// Declared before its host, whose threads use it until they are joined.
struct OpenStreams {
  std::mutex mutex;
  std::vector<std::shared_ptr<Stream>> streams;
  std::atomic<int> gone{0};

  HttpHost::Handler opener() {
    return [this](const std::shared_ptr<Exchange>& exchange) {
      exchange->on_gone([this] { ++gone; });
      const std::lock_guard lock(mutex);
      streams.push_back(exchange->stream(200, {{"Content-Type", "text/event-stream"}}));
    };
  }
  std::shared_ptr<Stream> stream(size_t index = 0) {
    EXPECT_TRUE(comes_true([&] {
      const std::lock_guard lock(mutex);
      return streams.size() > index;
    }));
    const std::lock_guard lock(mutex);
    return streams.at(index);
  }
};

TEST(HttpStreams, SendsEachPieceAtOnce) {
  OpenStreams open;
  HttpHost host;
  host.on("/events", open.opener());
  host.start();
  // The fastest: on a busy machine some are late. What is held back for more is late each time.
  double head_s = 1, piece_s = 1;
  for (size_t round = 0; round < 4; ++round) {
    HttpClient client = host.client();
    auto start = steady_clock::now();
    client.send(get_request("/events"));
    // The head does not wait for the first piece.
    EXPECT_NE(client.read_until("\r\n\r\n").find("text/event-stream"), std::string::npos);
    head_s = std::min(head_s, seconds_since(start));
    const auto stream = open.stream(round);
    EXPECT_EQ(host.server().counts().streams, 1);
    for (int i = 0; i < 5; ++i) {
      const std::string piece = "data: " + std::to_string(i) + "\n\n";
      start = steady_clock::now();
      stream->write(piece);
      EXPECT_FALSE(client.read_until(piece).empty());
      piece_s = std::min(piece_s, seconds_since(start));
    }
    EXPECT_TRUE(comes_true([&] { return stream->waiting() == 0; }));
    stream->end();
    stream->write("after the end");
    EXPECT_EQ(client.read_until("0\r\n\r\n"), "\r\n0\r\n\r\n");
    EXPECT_TRUE(comes_true([&] { return host.server().counts().streams == 0; }));
    // The connection is as good as new.
    EXPECT_EQ(client.get("/").status, 200);
  }
  EXPECT_LT(head_s, 0.02);
  EXPECT_LT(piece_s, 0.02);
  EXPECT_EQ(open.gone, 0);
  EXPECT_EQ(host.log()[0].bytes, 5u * 9);
}

TEST(HttpStreams, CarriesManyBytesOfAnotherThread) {
  std::string all;
  for (int i = 0; i < 200'000; ++i) all += std::to_string(i) + "\n";
  HttpHost host;
  host.on("/numbers", [&](const std::shared_ptr<Exchange>& exchange) {
    host.later([&, stream = exchange->stream(200, {})] {
      for (size_t at = 0; at < all.size(); at += 1000) {
        stream->write(std::string_view(all).substr(at, 1000));
      }
      stream->end();
    });
  });
  host.start();
  HttpClient client = host.client();
  const ClientAnswer answer = client.get("/numbers");
  EXPECT_TRUE(answer.was_chunked);
  EXPECT_EQ(answer.body, all);
}

TEST(HttpStreams, DisconnectsAReaderWhoLetsTooMuchWait) {
  ServerOptions options;
  options.limits.stream_bytes = 1'000'000;
  OpenStreams open;
  HttpHost host(options);
  host.on("/events", open.opener());
  host.start();
  HttpClient client = host.client();
  client.set_small_window();
  client.send(get_request("/events"));
  const auto stream = open.stream();
  const std::string piece(10'000, 'x');
  size_t most = 0;
  EXPECT_TRUE(comes_true([&] {
    stream->write(piece);
    most = std::max(most, stream->waiting());
    return open.gone == 1;
  }));
  EXPECT_GT(most, 500'000u);
  EXPECT_LE(most, 1'000'000u + piece.size());
  EXPECT_EQ(host.server().counts().disconnected, 1u);
  EXPECT_TRUE(comes_true([&] { return host.server().counts().connections == 0; }));
  stream->write(piece);
  stream->end();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(open.gone, 1);
}

TEST(HttpStreams, DisconnectsTheSlowOneWhereTogetherTheyLetTooMuchWait) {
  ServerOptions options;
  options.limits.unsent_bytes = 1'000'000;
  OpenStreams of_slow, of_quick;
  HttpHost host(options);
  host.on("/slow", of_slow.opener());
  host.on("/quick", of_quick.opener());
  host.start();
  HttpClient slow = host.client(), quick = host.client();
  slow.set_small_window();
  slow.send(get_request("/slow"));
  const auto waits = of_slow.stream();
  quick.send(get_request("/quick"));
  const auto goes_on = of_quick.stream();
  for (int i = 0; i < 20; ++i) waits->write(std::string(100'000, 'x'));
  EXPECT_TRUE(comes_true([&] { return of_slow.gone == 1; }));
  EXPECT_TRUE(comes_true([&] { return host.server().counts().unsent_bytes == 0; }));
  goes_on->write("still here");
  goes_on->end();
  EXPECT_EQ(quick.answer().body, "still here");
  EXPECT_EQ(of_quick.gone, 0);
}

TEST(HttpStreams, NoticesThatAReaderHasLeft) {
  OpenStreams open;
  HttpHost host;
  host.on("/events", open.opener());
  host.start();
  double fastest_s = 10;
  for (int round = 1; round <= 6; ++round) {
    HttpClient client = host.client();
    client.send(get_request("/events"));
    client.read_until("\r\n\r\n");
    const auto start = steady_clock::now();
    round % 2 == 0 ? client.leave_rudely() : client.leave();
    EXPECT_TRUE(comes_true([&] { return open.gone == round; }));
    fastest_s = std::min(fastest_s, seconds_since(start));
  }
  EXPECT_LT(fastest_s, 0.1);
  EXPECT_EQ(host.server().counts().streams, 0);
  EXPECT_EQ(host.server().counts().disconnected, 6u);
  open.stream()->write("nobody reads this");
}

TEST(HttpStreams, NoticesThatAClientLeavesWhileItWaits) {
  std::shared_ptr<Exchange> kept;
  std::atomic<int> gone{0};
  std::atomic<bool> has_arrived{false};
  HttpHost host;
  host.on("/later", [&](std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([&] { ++gone; });
    kept = std::move(exchange);
    has_arrived = true;
  });
  host.start();
  HttpClient client = host.client();
  client.send(get_request("/later"));
  ASSERT_TRUE(comes_true([&] { return has_arrived.load(); }));
  client.leave();
  EXPECT_TRUE(comes_true([&] { return gone == 1; }));
  EXPECT_TRUE(host.logs(499));
  EXPECT_EQ(host.server().counts().disconnected, 1u);
  // Too late for an answer, and for a second callback: that one comes at once.
  kept->answer(text_response(200, "to nobody"));
  kept->on_gone([&] { gone += 10; });
  EXPECT_EQ(gone, 11);
}

TEST(HttpStreams, ACallbackIsForgottenWithTheAnswer) {
  HttpHost host;
  const auto held = std::make_shared<int>(1);
  std::atomic<int> gone{0};
  host.on("/now", [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->on_gone([&, kept = held, itself = exchange] { ++gone; });
    exchange->answer(text_response(200, "done"));
  });
  host.start();
  HttpClient client = host.client();
  EXPECT_EQ(client.get("/now").status, 200);
  client.leave();
  EXPECT_TRUE(comes_true([&] { return held.use_count() == 1; }));
  EXPECT_EQ(gone, 0);
}

TEST(HttpStreams, ManyClientsLeaveAtAnyTime) {
  std::atomic<bool> ends{false};
  OpenStreams open;
  HttpHost host;
  host.on("/events", open.opener());
  host.start();
  host.later([&] {
    while (!ends) {
      std::vector<std::shared_ptr<Stream>> streams;
      {
        const std::lock_guard lock(open.mutex);
        streams = open.streams;
      }
      for (const auto& stream : streams) stream->write("data: x\n\n");
      std::this_thread::yield();
    }
  });
  constexpr int kClients = 60;
  for (int i = 0; i < kClients; ++i) {
    HttpClient client = host.client();
    client.send(get_request("/events"));
    if (i % 3 != 0) client.read_until("data: x\n\n");
    i % 2 == 0 ? client.leave() : client.leave_rudely();
  }
  EXPECT_TRUE(comes_true([&] { return host.server().counts().connections == 0; }));
  ends = true;
  // Those that were reset before their request was read have never been handled.
  EXPECT_EQ(open.gone, host.handled());
  EXPECT_GE(open.gone, kClients / 2);
  EXPECT_EQ(host.server().counts().streams, 0);
}

TEST(HttpStreams, RefusesMoreThanItAllows) {
  ServerOptions options;
  options.limits.streams = 2;
  OpenStreams open;
  HttpHost host(options);
  host.on("/events", open.opener());
  host.start();
  HttpClient first = host.client(), second = host.client(), third = host.client();
  for (HttpClient* client : {&first, &second}) {
    client->send(get_request("/events"));
    client->read_until("\r\n\r\n");
  }
  const ClientAnswer refused = third.get("/events");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, "refused: as many streams are open as the server allows");
  EXPECT_EQ(refused.headers.at("retry-after"), "5");
  // Whoever writes to it is told that nobody reads.
  EXPECT_TRUE(comes_true([&] { return open.gone == 1; }));
  open.stream(2)->write("to nobody");
  first.leave();
  EXPECT_TRUE(comes_true([&] { return host.server().counts().streams == 1; }));
  third.send(get_request("/events"));
  EXPECT_EQ(third.read_until("\r\n\r\n").substr(9, 3), "200");
}

TEST(HttpStreams, BreaksOffOneThatIsForgotten) {
  HttpHost host;
  host.on("/forgotten", [](const std::shared_ptr<Exchange>& exchange) {
    exchange->stream(200, {})->write("half of it");
  });
  host.start();
  HttpClient client = host.client();
  client.send(get_request("/forgotten"));
  const std::string all = client.read_to_end();
  EXPECT_EQ(all.find("0\r\n\r\n", all.find("\r\n\r\n") + 4), std::string::npos);
}

TEST(HttpStreams, GivesOnlyAHeadToHead) {
  OpenStreams open;
  HttpHost host;
  host.on("/events", open.opener());
  host.start();
  HttpClient client = host.client();
  client.send("HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.answer(true).status, 200);
  EXPECT_EQ(client.get("/").status, 200);
  EXPECT_EQ(host.server().counts().streams, 0);
}

}  // namespace
}  // namespace octet::server::http
