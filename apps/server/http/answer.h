// An answer in libmicrohttpd's form.
#pragma once

#include <microhttpd.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/http/exchange.h"

namespace octet::server::http {

struct ReplyDeleter {
  void operator()(MHD_Response* reply) const { MHD_destroy_response(reply); }
};
using Reply = std::unique_ptr<MHD_Response, ReplyDeleter>;

// False for what would be more than one line, and for what is left out: headers without a value,
// and those that the transport writes itself.
bool is_sendable(const std::string& name, const std::string& value);

// Null if the status is none that an answer has, if a header would be more than one line, or for
// want of memory.
Reply make_reply(const Response& response);
// The same with a body that is read piece by piece; `free` is called in any case.
Reply make_reply(const Response& head, MHD_ContentReaderCallback read, void* context,
                 MHD_ContentReaderFreeCallback free);

void add_header(MHD_Response* reply, const char* name, const std::string& value);

std::string_view reason_phrase(int status);  // "Not Found"

}  // namespace octet::server::http
