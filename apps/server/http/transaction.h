// One request on its way to its answer. Its connection's mutex guards everything that more than one
// thread uses; the rest belongs to libmicrohttpd's thread until the request is handed over.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "server/http/answer.h"
#include "server/http/connection.h"
#include "server/http/head.h"

namespace octet::server::http {

// What a stream's reader has not taken yet.
class StreamQueue {
 public:
  size_t size() const { return size_; }
  void push(std::string_view bytes);
  struct Taken {
    size_t bytes = 0, freed = 0;  // what was written in one piece is freed when all of it is taken
  };
  Taken take(char* into, size_t room);

 private:
  std::deque<std::string> pieces_;  // none is empty
  size_t size_ = 0;
  size_t taken_ = 0;  // of the first
};

class Transaction : public std::enable_shared_from_this<Transaction> {
 public:
  explicit Transaction(std::shared_ptr<Connection> connection);

  // --- on libmicrohttpd's thread ---
  // The head has arrived. What it says is answered with a refusal, or the body is read.
  MHD_Result begin(const char* method, const char* version);
  MHD_Result read_body(const char* data, size_t size);
  // The request is complete, or was and has been waiting: asks the handler, answers or waits.
  MHD_Result go_on();
  // libmicrohttpd is done with it, for better or worse. Nothing else is called after this.
  void complete(bool sent);

  // --- on any thread ---
  const Request& request() const { return request_; }
  void answer(Response response);
  // Without an answer, this is what it gets.
  void refuse(Refusal refusal);
  // Where too many are open the answer is a refusal, and the client counts as one that has left.
  void open_stream(int status, Headers headers);
  void on_gone(std::function<void()> gone);
  size_t stream_waiting() const;
  void stream_write(std::string_view bytes);
  void stream_end(bool complete);

  void note_status_locked(int status) { status_ = status; }
  // What its client has not taken yet, and since when there is something.
  struct Waiting {
    const std::string* body = nullptr;  // of an answer
    uint64_t body_bytes = 0, stream_bytes = 0;
    Clock::time_point since = {};
    bool operator==(const Waiting&) const = default;
  };
  Waiting waiting_locked() const;

 private:
  struct OpenStream {
    Response head;
  };
  using Outcome = std::variant<std::monostate, Response, Refusal, OpenStream>;

  std::optional<Refusal> read_head(const char* method, const char* version);
  std::optional<Refusal> refusal_of_head();
  MHD_Result refuse_head(Outcome outcome);
  void call_handler();
  MHD_Result send();
  MHD_Result queue(int status, uint64_t size, Reply reply);
  static ssize_t read_stream(void* self, uint64_t position, char* into, size_t room);
  ssize_t read_stream(char* into, size_t room);
  ssize_t close_locked(ssize_t reason);
  void release_answer_locked();

  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<Core> core_;
  const Clock::time_point started_ = Clock::now();
  Request request_;
  Framing framing_;
  bool is_1_1_ = true;
  bool drops_body_ = false;
  bool handled_ = false;

  // Guarded by the connection's mutex.
  Outcome outcome_;
  bool has_outcome_ = false;  // also when it has been taken from there
  bool finished_ = false;
  bool left_ = false;
  bool is_stream_ = false, stream_refused_ = false, stream_ended_ = false, stream_broken_ = false;
  StreamQueue queue_;
  std::function<void()> gone_;
  int status_ = 0;
  uint64_t sent_ = 0;  // of the body
  // Counted in Core::unsent: an answer's body, and what is in memory of a stream.
  std::shared_ptr<const std::string> body_;
  uint64_t held_ = 0;
  Clock::time_point held_since_ = {};
};

}  // namespace octet::server::http
