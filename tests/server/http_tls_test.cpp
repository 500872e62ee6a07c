// Encrypted connections. `openssl` makes the certificate, and is the client.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "octet/error.h"
#include "server/http_host.h"

namespace octet::server::http {
namespace {

class HttpTls : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no openssl here";
    std::string name = std::filesystem::temp_directory_path() / "octet_tls_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    const std::string make = "cd " + name +
                             " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                             "-nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost "
                             ">/dev/null 2>&1";
    ASSERT_EQ(std::system(make.c_str()), 0);
    options_.certificate = folder_ / "cert.pem";
    options_.private_key = folder_ / "key.pem";
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // What openssl's client prints of the server's bytes when it has sent these.
  std::string ask(uint16_t port, const std::string& request) const {
    std::ofstream(folder_ / "request") << request;
    const std::string command = "cd " + folder_.string() +
                                " && openssl s_client -quiet -verify_return_error -CAfile cert.pem "
                                "-connect 127.0.0.1:" +
                                std::to_string(port) + " <request 2>/dev/null";
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
    pclose(pipe);
    return text;
  }

  std::filesystem::path folder_;
  ServerOptions options_;
};

TEST_F(HttpTls, AnswersAndStreams) {
  HttpHost host(options_);
  host.on("/events", [&](const std::shared_ptr<Exchange>& exchange) {
    host.later([stream = exchange->stream(200, {})] {
      for (int i = 0; i < 3; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        stream->write("piece " + std::to_string(i));
      }
      stream->end();
    });
  });
  host.start();
  const std::string closing = "Host: localhost\r\nConnection: close\r\n\r\n";
  const std::string text = ask(host.server().port(), "GET /a HTTP/1.1\r\n" + closing);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
  EXPECT_TRUE(text.ends_with("path /a")) << text;
  const std::string stream = ask(host.server().port(), "GET /events HTTP/1.1\r\n" + closing);
  EXPECT_NE(stream.find("piece 2"), std::string::npos) << stream;
  EXPECT_TRUE(stream.ends_with("0\r\n\r\n")) << stream;
}

TEST_F(HttpTls, GivesPlainRequestsNothing) {
  HttpHost host(options_);
  host.start();
  HttpClient client = host.client();
  client.send(get_request("/"));
  EXPECT_EQ(client.read_to_end().find("HTTP"), std::string::npos);
  EXPECT_EQ(host.handled(), 0);
}

TEST_F(HttpTls, EndsHandshakesThatDribble) {
  options_.limits.request_s = 1;
  HttpHost host(options_);
  host.start();
  HttpClient client = host.client();
  client.send("\x16");
  EXPECT_TRUE(client.ends_within(8));
}

TEST_F(HttpTls, SaysWhatIsWrongWithItsFiles) {
  ServerOptions half = options_;
  half.private_key.clear();
  EXPECT_THROW(HttpServer{half}, Error);
  ServerOptions absent = options_;
  absent.certificate = folder_ / "absent.pem";
  EXPECT_THROW(HttpServer{absent}, Error);
  ServerOptions wrong = options_;
  std::ofstream(folder_ / "wrong.pem") << "no certificate";
  wrong.certificate = folder_ / "wrong.pem";
  EXPECT_THROW(HttpServer{wrong}, Error);
}

}  // namespace
}  // namespace octet::server::http
