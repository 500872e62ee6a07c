#include "server/http/server_exchange.h"

#include <utility>

#include "server/http/transaction.h"

namespace octet::server::http {
namespace {

class ServerStream : public Stream {
 public:
  explicit ServerStream(std::shared_ptr<Transaction> transaction)
      : transaction_(std::move(transaction)) {}
  ~ServerStream() override { transaction_->stream_end(false); }
  ServerStream(const ServerStream&) = delete;
  ServerStream& operator=(const ServerStream&) = delete;

  size_t waiting() const override { return transaction_->stream_waiting(); }
  void write(std::string_view bytes) override { transaction_->stream_write(bytes); }
  void end() override { transaction_->stream_end(true); }

 private:
  const std::shared_ptr<Transaction> transaction_;
};

class ServerExchange : public Exchange {
 public:
  explicit ServerExchange(std::shared_ptr<Transaction> transaction)
      : transaction_(std::move(transaction)) {}
  ~ServerExchange() override { transaction_->refuse({500, "the server gave no answer"}); }
  ServerExchange(const ServerExchange&) = delete;
  ServerExchange& operator=(const ServerExchange&) = delete;

  const Request& request() const override { return transaction_->request(); }
  void answer(Response response) override { transaction_->answer(std::move(response)); }
  std::shared_ptr<Stream> stream(int status, Headers headers) override {
    transaction_->open_stream(status, std::move(headers));
    return std::make_shared<ServerStream>(transaction_);
  }
  void on_gone(std::function<void()> gone) override { transaction_->on_gone(std::move(gone)); }

 private:
  const std::shared_ptr<Transaction> transaction_;
};

}  // namespace

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Transaction> transaction) {
  return std::make_shared<ServerExchange>(std::move(transaction));
}

}  // namespace octet::server::http
