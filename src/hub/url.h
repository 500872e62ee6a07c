// What libcurl and the sentences of http.h need of a URL.
#pragma once

#include <string>

namespace octet::hub {

// For a sentence: without a name, a password, and what stands behind '?'.
std::string shown(const std::string& url);

// Where a Location header of an answer from `url` leads; itself when it is none that can be
// followed.
std::string joined(const std::string& url, const std::string& location);

// "host:port:address,address", for CURLOPT_RESOLVE: the host of a URL, looked up in this thread.
// Empty when it is not found.
std::string look_up(const std::string& url);

}  // namespace octet::hub
