// What a handler holds of a transaction. It may outlive the connection and the server.
#pragma once

#include <memory>

#include "server/http/exchange.h"

namespace octet::server::http {

class Transaction;

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Transaction> transaction);

}  // namespace octet::server::http
