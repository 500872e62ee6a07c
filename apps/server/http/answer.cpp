#include "server/http/answer.h"

#include <algorithm>

#include "server/http/head.h"

namespace octet::server::http {
namespace {

// Large enough that a picture takes few turns, and small beside the memory of a connection.
constexpr size_t kBlock = size_t{32} << 10;

bool is_own_header(const std::string& name) {
  for (const char* own : {"content-length", "transfer-encoding", "date", "connection"}) {
    const std::string_view word = own;
    if (std::ranges::equal(name, word, [](char a, char b) { return (a | 32) == b; })) return true;
  }
  return false;
}

bool add_headers(MHD_Response* reply, const Response& response) {
  for (const auto& [name, value] : response.headers) {
    if (!is_token(name) || !is_header_value(value)) return false;
    if (!is_sendable(name, value)) continue;
    if (MHD_add_response_header(reply, name.c_str(), value.c_str()) == MHD_NO) return false;
  }
  return response.status >= 200 && response.status <= 599;
}

void free_body(void* bytes) { delete static_cast<Bytes*>(bytes); }

Reply reply_of_bytes(const Bytes& body) {
  if (!body || body->empty()) {
    return Reply(MHD_create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT));
  }
  auto kept = std::make_unique<Bytes>(body);
  Reply reply(MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), const_cast<char*>(body->data()), &free_body, kept.get()));
  if (reply) kept.release();
  return reply;
}

}  // namespace

bool is_sendable(const std::string& name, const std::string& value) {
  return is_token(name) && !is_own_header(name) && !value.empty() && is_header_value(value);
}

Reply make_reply(const Response& response) {
  Reply reply = reply_of_bytes(response.body);
  if (reply && !add_headers(reply.get(), response)) reply.reset();
  return reply;
}

Reply make_reply(const Response& head, MHD_ContentReaderCallback read, void* context,
                 MHD_ContentReaderFreeCallback free) {
  Reply reply(MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, read, context, free));
  if (!reply) {
    free(context);
  } else if (!add_headers(reply.get(), head)) {
    reply.reset();
  }
  return reply;
}

void add_header(MHD_Response* reply, const char* name, const std::string& value) {
  MHD_add_response_header(reply, name, value.c_str());
}

std::string_view reason_phrase(int status) {
  const char* phrase = MHD_get_reason_phrase_for(static_cast<unsigned>(status));
  return phrase ? phrase : "Unknown";
}

}  // namespace octet::server::http
