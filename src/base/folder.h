// What is in a folder. std::filesystem's iterators end the process if memory runs out: they make
// paths in functions that are noexcept.
#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace octet {

// The names of what is directly in a folder, in no order. If it cannot be read, `error` says why.
std::vector<std::string> names_in(const std::string& folder, std::error_code& error);

// What is in a folder and the folders below it but folders themselves, as paths from it, in no
// order. Links are not followed.
std::vector<std::string> files_below(const std::string& folder, std::error_code& error);

}  // namespace octet
