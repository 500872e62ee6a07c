// What microhttpd_server.cpp is, on cpp-httplib with the threads that it has of itself.
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

int main() {
  httplib::Server server;
  server.set_tcp_nodelay(true);  // without it each answer takes 40 ms
  std::atomic<bool> ends{false};
  server.Get("/hello", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(R"({"status":"ok"})", "application/json");
  });
  server.Get("/events", [&](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider(
        "text/event-stream", [&](size_t offset, httplib::DataSink& sink) {
          if (offset == 0) return sink.write("data: first\n\n", 13);
          // A provider is asked again at once: its thread is what waits for the next event.
          while (!ends && sink.is_writable()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          }
          return false;
        });
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { server.listen_after_bind(); });
  std::printf("%d\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  ends = true;
  server.stop();
  serving.join();
}
