#include "server/http/transaction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/http/answer.h"
#include "server/http/server_exchange.h"

namespace octet::server::http {
namespace {

// A refused body up to this size is read and dropped, so that its connection stays usable.
constexpr uint64_t kDroppedBody = uint64_t{64} << 10;
// The status in logs of a request whose client left before there was an answer.
constexpr int kClientLeft = 499;

MHD_Result add_request_header(void* headers, MHD_ValueKind, const char* name, size_t name_size,
                              const char* value, size_t value_size) {
  auto& list = *static_cast<Headers*>(headers);
  std::string lower(name, name_size);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  list.emplace_back(std::move(lower), std::string(value ? value : "", value ? value_size : 0));
  return MHD_YES;
}

}  // namespace

void StreamQueue::push(std::string_view bytes) {
  if (bytes.empty()) return;
  pieces_.emplace_back(bytes);
  size_ += bytes.size();
}

StreamQueue::Taken StreamQueue::take(char* into, size_t room) {
  Taken sum;
  while (sum.bytes < room && size_ > 0) {
    const std::string& first = pieces_.front();
    const size_t count = std::min(room - sum.bytes, first.size() - taken_);
    std::memcpy(into + sum.bytes, first.data() + taken_, count);
    sum.bytes += count;
    size_ -= count;
    taken_ += count;
    if (taken_ < first.size()) break;
    sum.freed += first.size();
    pieces_.pop_front();
    taken_ = 0;
  }
  return sum;
}

Transaction::Transaction(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)), core_(connection_->core) {
  request_.id = new_request_id();
  request_.peer = connection_->peer;
}

std::optional<Refusal> Transaction::read_head(const char* method, const char* version) {
  request_.method = method;
  MHD_get_connection_values_n(connection_->handle, MHD_HEADER_KIND, &add_request_header,
                              &request_.headers);
  is_1_1_ = std::string_view(version) != "HTTP/1.0";
  if (auto refusal = read_framing(request_, is_1_1_, framing_)) return refusal;
  return read_target(connection_->target, request_);
}

std::optional<Refusal> Transaction::refusal_of_head() {
  const Limits& limits = core_->options.limits;
  const auto* size =
      MHD_get_connection_info(connection_->handle, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  if (size && size->header_size > limits.header_bytes) {
    return Refusal{
        431, "the request's head is larger than " + std::to_string(limits.header_bytes) + " bytes",
        true};
  }
  if (framing_.length > limits.body_bytes) {
    return Refusal{413, "the body is larger than " + std::to_string(limits.body_bytes) + " bytes",
                   true};
  }
  return std::nullopt;
}

MHD_Result Transaction::begin(const char* method, const char* version) {
  {
    const std::lock_guard lock(connection_->mutex);
    connection_->enter_locked(Connection::Phase::kReading);
    connection_->transaction = shared_from_this();
  }
  core_->begin_request();
  auto refusal = read_head(method, version);
  if (!refusal) refusal = refusal_of_head();
  if (refusal) {
    ++core_->refused;
    return refuse_head(std::move(*refusal));
  }
  if (core_->options.admit) {
    try {
      if (auto response = core_->options.admit(request_)) return refuse_head(std::move(*response));
    } catch (...) {
      return refuse_head(Refusal{500, "the server failed at this request", true});
    }
  }
  if (!framing_.chunked) request_.body.reserve(framing_.length);
  return MHD_YES;
}

MHD_Result Transaction::refuse_head(Outcome outcome) {
  const auto* refusal = std::get_if<Refusal>(&outcome);
  const bool closes = refusal && refusal->close;
  const bool is_small = !framing_.chunked && framing_.length <= kDroppedBody;
  const bool waits = framing_.has_body() && framing_.waits_for_continue;
  {
    const std::lock_guard lock(connection_->mutex);
    outcome_ = std::move(outcome);
    has_outcome_ = handled_ = true;
  }
  if (!closes && is_small && !waits) {
    drops_body_ = true;
    return MHD_YES;
  }
  // Answered before the body is there: libmicrohttpd closes the connection afterwards.
  connection_->lingers = framing_.has_body() || closes;
  return send();
}

MHD_Result Transaction::read_body(const char* data, size_t size) {
  if (drops_body_) return MHD_YES;
  const size_t limit = core_->options.limits.body_bytes;
  if (request_.body.size() + size <= limit) {
    request_.body.append(data, size);
    return MHD_YES;
  }
  // Only chunks come here. libmicrohttpd takes no answer before their end, which may never come.
  ++core_->refused;
  const Refusal refusal{413, "the body is larger than " + std::to_string(limit) + " bytes", true};
  const std::string text = raw_answer(core_->answer_to(refusal), request_.id);
  const std::lock_guard lock(connection_->mutex);
  status_ = refusal.status;
  connection_->send_raw_locked(text);
  return MHD_NO;
}

MHD_Result Transaction::go_on() {
  if (!handled_) {
    {
      const std::lock_guard lock(connection_->mutex);
      if (connection_->broken) return MHD_NO;  // refused at the last moment: nobody may act on it
      connection_->enter_locked(Connection::Phase::kWaiting);
    }
    handled_ = true;
    call_handler();
  }
  {
    const std::lock_guard lock(connection_->mutex);
    if (!has_outcome_) return connection_->suspend_locked() ? MHD_YES : MHD_NO;
  }
  return send();
}

void Transaction::call_handler() {
  const auto exchange = make_exchange(shared_from_this());
  try {
    core_->options.handle(exchange);
  } catch (...) {
    refuse({500, "the server failed at this request"});
  }
}

MHD_Result Transaction::send() {
  Outcome outcome;
  {
    const std::lock_guard lock(connection_->mutex);
    outcome = std::exchange(outcome_, std::monostate());
  }
  if (const auto* refusal = std::get_if<Refusal>(&outcome)) outcome = core_->answer_to(*refusal);
  if (const auto* open = std::get_if<OpenStream>(&outcome)) {
    auto self = std::make_unique<std::shared_ptr<Transaction>>(shared_from_this());
    Reply reply = make_reply(open->head, &Transaction::read_stream, self.release(), [](void* kept) {
      delete static_cast<std::shared_ptr<Transaction>*>(kept);
    });
    if (reply) return queue(open->head.status, 0, std::move(reply));
    stream_end(false);
  } else if (const auto* response = std::get_if<Response>(&outcome)) {
    const uint64_t size = response->body ? response->body->size() : 0;
    if (Reply reply = make_reply(*response)) return queue(response->status, size, std::move(reply));
  }
  const Response failed = core_->answer_to({500, "the server has no valid answer"});
  return queue(failed.status, failed.body->size(), make_reply(failed));
}

MHD_Result Transaction::queue(int status, uint64_t size, Reply reply) {
  if (!reply) return MHD_NO;
  add_header(reply.get(), "X-Request-Id", request_.id);
  if (core_->draining) add_header(reply.get(), "Connection", "close");
  {
    const std::lock_guard lock(connection_->mutex);
    status_ = status;
    const bool has_body = request_.method != "HEAD" && status != 204 && status != 304;
    if (!is_stream_ && has_body) sent_ = size;
    connection_->enter_locked(is_stream_ ? Connection::Phase::kStreaming
                                         : Connection::Phase::kAnswering);
  }
  return MHD_queue_response(connection_->handle, static_cast<unsigned>(status), reply.get());
}

ssize_t Transaction::read_stream(void* self, uint64_t, char* into, size_t room) {
  return (*static_cast<std::shared_ptr<Transaction>*>(self))->read_stream(into, room);
}

ssize_t Transaction::read_stream(char* into, size_t room) {
  const std::lock_guard lock(connection_->mutex);
  if (connection_->gone || stream_broken_) return close_locked(MHD_CONTENT_READER_END_WITH_ERROR);
  if (queue_.size() > 0) {
    const StreamQueue::Taken taken = queue_.take(into, room);
    sent_ += taken.bytes;
    held_ -= taken.freed;
    core_->unsent.release(taken.freed);
    return static_cast<ssize_t>(taken.bytes);
  }
  if (stream_ended_) {
    constexpr ssize_t kEnd = MHD_CONTENT_READER_END_OF_STREAM;
    return is_1_1_ ? kEnd : close_locked(kEnd);  // before 1.1 the end of the connection tells it
  }
  connection_->push_locked();
  return connection_->suspend_locked() ? 0 : close_locked(MHD_CONTENT_READER_END_WITH_ERROR);
}

ssize_t Transaction::close_locked(ssize_t reason) {
  // Without a clock libmicrohttpd (0.9.75) forgets a connection that its reader ends after it has
  // been suspended: its socket stays open for ever. With one of a second it looks after it.
  MHD_set_connection_option(connection_->handle, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
  return reason;
}

void Transaction::complete(bool sent) {
  std::function<void()> gone;
  int status = 0;
  uint64_t bytes = 0;
  {
    const std::lock_guard lock(connection_->mutex);
    finished_ = true;
    left_ = !sent || stream_refused_;
    gone = std::exchange(gone_, nullptr);
    status = status_ != 0 ? status_ : kClientLeft;
    bytes = sent || is_stream_ ? sent_ : 0;
    if (is_stream_) --core_->streams;
    release_answer_locked();
    connection_->transaction.reset();
    connection_->enter_locked(Connection::Phase::kIdle);
  }
  const bool was_refused = status == 408 || status == 413;
  if (!sent && !was_refused && !core_->stopping) ++core_->disconnected;
  try {
    if (gone && left_) gone();
    gone = nullptr;
    const std::chrono::duration<double> took = Clock::now() - started_;
    if (core_->options.done) core_->options.done(request_, status, bytes, took.count());
  } catch (...) {  // libmicrohttpd is written in C
  }
  core_->end_request();
}

void Transaction::release_answer_locked() {
  core_->unsent.release(std::exchange(held_, 0));
  if (body_ == nullptr) return;
  core_->unsent.release(*body_);
  body_ = nullptr;
}

Transaction::Waiting Transaction::waiting_locked() const {
  return {body_.get(), body_ ? body_->size() : 0, held_, held_since_};
}

void Transaction::answer(Response response) {
  const std::lock_guard lock(connection_->mutex);
  if (has_outcome_ || finished_) return;
  if (response.body != nullptr) core_->unsent.hold(*response.body);
  has_outcome_ = true;
  body_ = response.body;
  held_since_ = Clock::now();
  outcome_ = std::move(response);
  connection_->wake_locked();
}

void Transaction::refuse(Refusal refusal) {
  const std::lock_guard lock(connection_->mutex);
  if (has_outcome_ || finished_) return;
  has_outcome_ = true;
  outcome_ = std::move(refusal);
  connection_->wake_locked();
}

void Transaction::open_stream(int status, Headers headers) {
  const std::lock_guard lock(connection_->mutex);
  if (has_outcome_ || finished_) return;
  has_outcome_ = true;
  if (++core_->streams > core_->options.limits.streams) {
    --core_->streams;
    ++core_->refused;
    stream_refused_ = true;
    outcome_ = Refusal{503, "as many streams are open as the server allows"};
  } else {
    is_stream_ = true;
    outcome_ = OpenStream{{.status = status, .headers = std::move(headers)}};
  }
  connection_->wake_locked();
}

void Transaction::on_gone(std::function<void()> gone) {
  {
    const std::lock_guard lock(connection_->mutex);
    if (!finished_) {
      std::swap(gone_, gone);
      return;
    }
    if (!left_) return;
  }
  gone();
}

size_t Transaction::stream_waiting() const {
  const std::lock_guard lock(connection_->mutex);
  return queue_.size();
}

void Transaction::stream_write(std::string_view bytes) {
  const std::lock_guard lock(connection_->mutex);
  if (!is_stream_ || finished_ || stream_ended_ || connection_->gone) return;
  // One that is longer than the limit reaches a reader who has taken what came before.
  if (queue_.size() > core_->options.limits.stream_bytes) {
    connection_->break_off_locked();
    return;
  }
  if (held_ == 0) held_since_ = Clock::now();
  queue_.push(bytes);
  held_ += bytes.size();
  core_->unsent.hold(bytes.size());
  connection_->wake_locked();
}

void Transaction::stream_end(bool complete) {
  const std::lock_guard lock(connection_->mutex);
  if (!is_stream_ || finished_ || stream_ended_) return;
  stream_ended_ = true;
  stream_broken_ = !complete;
  connection_->wake_locked();
}

}  // namespace octet::server::http
