// Requests and their answers, as long as everybody behaves.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "octet/error.h"
#include "server/http_host.h"

namespace octet::server::http {
namespace {

TEST(HttpAnswers, KeepsAConnectionForTheNextRequest) {
  HttpHost host;
  host.start();
  HttpClient client = host.client();
  const ClientAnswer first = client.get("/a");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "path /a");
  EXPECT_EQ(client.post("/echo", "some text").body, "POST some text");
  EXPECT_EQ(client.get("/b").body, "path /b");
  EXPECT_EQ(host.server().counts().connections, 1);
}

TEST(HttpAnswers, AnswersPipelinedRequestsInTheirOrder) {
  HttpHost host;
  host.start();
  HttpClient client = host.client();
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += get_request("/" + std::to_string(i));
  client.send(requests);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.answer().body, "path /" + std::to_string(i));
}

TEST(HttpAnswers, SendsAnAnswerOfAnotherThread) {
  HttpHost host;
  host.on("/later", [&](const std::shared_ptr<Exchange>& exchange) {
    host.later([exchange] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      exchange->answer(text_response(201, "made"));
    });
  });
  host.start();
  HttpClient client = host.client();
  // The second waits in the connection while the first waits for its answer.
  client.send(get_request("/later") + get_request("/after"));
  const ClientAnswer later = client.answer();
  EXPECT_EQ(later.status, 201);
  EXPECT_EQ(later.body, "made");
  EXPECT_EQ(client.answer().body, "path /after");
}

TEST(HttpAnswers, ManyThreadsAnswerManyClients) {
  constexpr int kClients = 16, kRequests = 40;
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> waiting;
  std::atomic<int> answered{0};
  HttpHost host;
  host.on("/later", [&](std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(mutex);
    waiting.push_back(std::move(exchange));
  });
  host.start();
  for (int i = 0; i < 3; ++i) {
    host.later([&] {
      while (answered < kClients * kRequests) {
        std::vector<std::shared_ptr<Exchange>> some;
        {
          const std::lock_guard lock(mutex);
          some.swap(waiting);
        }
        for (const auto& each : some) {
          ++answered;
          each->answer(text_response(200, *each->request().parameter("n")));
        }
        std::this_thread::yield();
      }
    });
  }
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      HttpClient client = host.client();
      for (int k = 0; k < kRequests; ++k) {
        const std::string number = std::to_string(i * 1000 + k);
        if (client.get("/later?n=" + number).body == number) ++right;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, kClients * kRequests);
}

TEST(HttpAnswers, SendsALargeBodyOfManyOwners) {
  HttpHost host;
  const Bytes large = bytes_of(std::string(8'000'000, 'x'));
  host.on("/large", [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->answer({.status = 200, .headers = {}, .body = large});
  });
  host.start();
  HttpClient a = host.client(), b = host.client();
  EXPECT_EQ(a.get("/large").body, *large);
  EXPECT_EQ(b.get("/large").body, *large);
  EXPECT_TRUE(comes_true([&] { return host.log().size() == 2; }));
  EXPECT_EQ(host.log()[0].bytes, large->size());
  EXPECT_TRUE(comes_true([&] { return large.use_count() == 1; }));
}

TEST(HttpAnswers, DecodesPathAndQuery) {
  HttpHost host;
  host.on("/a b/\xc3\xa4", [](const std::shared_ptr<Exchange>& exchange) {
    const Request& request = exchange->request();
    exchange->answer(text_response(
        200, *request.parameter("x y") + "|" + *request.parameter("empty") + "|" + request.peer));
  });
  host.start();
  HttpClient client = host.client();
  EXPECT_EQ(client.get("/a%20b/%C3%A4?x+y=1%262&empty&&z=3").body, "1&2||127.0.0.1");
}

TEST(HttpAnswers, GivesAHeadWithoutABodyToHead) {
  HttpHost host;
  host.start();
  HttpClient client = host.client();
  client.send("HEAD /abc HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const ClientAnswer head = client.answer(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "9");
  EXPECT_EQ(client.get("/next").body, "path /next");
}

TEST(HttpAnswers, EachHasTheIdOfItsRequest) {
  HttpHost host;
  host.start();
  HttpClient client = host.client();
  const std::string first = client.get("/a").headers.at("x-request-id");
  const std::string second = client.get("/%00").headers.at("x-request-id");
  EXPECT_TRUE(first.starts_with("req-"));
  EXPECT_EQ(first.size(), 4u + 24u);
  EXPECT_NE(first, second);
  ASSERT_TRUE(comes_true([&] { return host.log().size() == 2; }));
  EXPECT_EQ(host.log()[0].id, first);
  EXPECT_EQ(host.log()[1].id, second);
}

TEST(HttpAnswers, ContinuesForAClientThatAsksFirst) {
  HttpHost host;
  host.start();
  HttpClient client = host.client();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n").substr(0, 12), "HTTP/1.1 100");
  client.send("hello");
  EXPECT_EQ(client.answer().body, "POST hello");
}

TEST(HttpAnswers, JoinsTheChunksOfABody) {
  HttpHost host;
  host.start();
  HttpClient client = host.client();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0A;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(client.answer().body, "POST abc0123456789");
  EXPECT_EQ(client.get("/next").body, "path /next");
}

TEST(HttpAnswers, WithoutOneTheAnswerIs500) {
  HttpHost host;
  host.on("/throws", [](const std::shared_ptr<Exchange>&) { throw Error("no"); });
  host.on("/drops", [](const std::shared_ptr<Exchange>&) {});
  host.on("/drops_later", [&](std::shared_ptr<Exchange> exchange) {
    host.later([kept = std::move(exchange)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      kept.reset();
    });
  });
  host.on("/answers_and_throws", [](const std::shared_ptr<Exchange>& exchange) {
    exchange->answer(text_response(202, "first"));
    exchange->answer(text_response(203, "second"));
    throw Error("no");
  });
  host.start();
  HttpClient client = host.client();
  EXPECT_EQ(client.get("/throws").body, "refused: the server failed at this request");
  EXPECT_EQ(client.get("/drops").body, "refused: the server gave no answer");
  EXPECT_EQ(client.get("/drops_later").status, 500);
  EXPECT_EQ(client.get("/answers_and_throws").body, "first");
}

TEST(HttpAnswers, NoHeaderCanHoldASecondOne) {
  HttpHost host;
  host.on("/value", [](const std::shared_ptr<Exchange>& exchange) {
    exchange->answer({.status = 200, .headers = {{"X-Name", "a\r\nSet-Cookie: b"}}});
  });
  host.on("/name", [](const std::shared_ptr<Exchange>& exchange) {
    exchange->stream(200, {{"X-Name: a\r\nSet-Cookie", "b"}})->write("text");
  });
  host.on("/status",
          [](const std::shared_ptr<Exchange>& exchange) { exchange->answer({.status = 99}); });
  host.on("/own", [](const std::shared_ptr<Exchange>& exchange) {
    exchange->answer(
        {.status = 200, .headers = {{"content-length", "7"}, {"X-Empty", ""}, {"X-Name", "a"}}});
  });
  host.start();
  HttpClient client = host.client();
  for (const char* path : {"/value", "/name", "/status"}) {
    const ClientAnswer answer = client.get(path);
    EXPECT_EQ(answer.status, 500) << path;
    EXPECT_FALSE(answer.headers.contains("set-cookie")) << path;
    EXPECT_FALSE(answer.headers.contains("x-name")) << path;
  }
  const ClientAnswer own = client.get("/own");
  EXPECT_EQ(own.status, 200);
  EXPECT_EQ(own.headers.at("content-length"), "0");
  EXPECT_EQ(own.headers.at("x-name"), "a");
  EXPECT_FALSE(own.headers.contains("x-empty"));
}

TEST(HttpAnswers, ServesOldClients) {
  HttpHost host;
  host.on("/stream", [&](const std::shared_ptr<Exchange>& exchange) {
    host.later([stream = exchange->stream(200, {})] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stream->write("a stream");
      stream->end();
    });
  });
  host.start();
  HttpClient plain = host.client(), streaming = host.client();
  plain.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(plain.read_to_end().ends_with("\r\n\r\npath /old"));
  streaming.send("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(streaming.read_to_end().ends_with("\r\n\r\na stream"));
  plain.leave();
  streaming.leave();
  EXPECT_TRUE(comes_true([&] { return host.server().counts().connections == 0; }));
  EXPECT_EQ(host.server().counts().disconnected, 0u);
}

TEST(HttpAnswers, SaysWhereItCannotListen) {
  HttpHost host;
  host.start();
  ServerOptions options;
  options.port = host.server().port();
  try {
    HttpServer second(options);
    FAIL() << "two servers on one port";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot listen on 127.0.0.1 port " + std::to_string(options.port) +
                  ": Address already in use; choose another address or port");
  }
  options.address = "no address";
  EXPECT_THROW(HttpServer{options}, Error);
}

TEST(HttpAnswers, ServesIpv6WhereItIs) {
  ServerOptions options;
  options.address = "::1";
  HttpHost host(options);
  try {
    host.start();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(host.server().port());
  to.sin6_addr = in6addr_loopback;
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  close(fd);
}

}  // namespace
}  // namespace octet::server::http
