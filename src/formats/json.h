// The one validator for untrusted JSON text: safetensors headers, index files, captions, configs.
//
// On top of what nlohmann checks (grammar, UTF-8) it refuses what a file can use against its
// reader: duplicate keys (two readers may pick different ones), nesting beyond kMaxJsonDepth
// (recursive users of the value would overflow their stack), NUL bytes (nlohmann stops at them) and
// more than kMaxJsonValues values (each takes up to fifty times its text in memory). A byte order
// mark before the text is skipped. Every error names `what`, the byte and the fault.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "formats/json_value.h"

namespace octet {

inline constexpr size_t kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonValues = 4'000'000;
inline constexpr size_t kMaxJsonBytes = 100'000'000;
// Its objects compare a new key with each one before, so the time grows with the square of them.
inline constexpr size_t kMaxOrderedJsonBytes = 65'536;

// `what` begins the error sentence: a file name, or a file name and a part of it.
nlohmann::json parse_json(std::string_view text, const std::string& what);

// The same for texts whose keys have an order that matters; at most kMaxOrderedJsonBytes.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& what);

// parse_json() of a whole file of at most kMaxJsonBytes.
nlohmann::json read_json_file(const std::string& path);

// A value as an error message shows it: `-1`, `"F33"`, `an array of 3`, `an object`, `null`.
std::string describe(const nlohmann::json& value);
std::string describe(const nlohmann::ordered_json& value);

// a == b. Compiled once: inlined where a value has just been made of a literal, nlohmann's operator
// has gcc 12 for aarch64 warn of reads behind the string, in the branch for binary values.
bool is_same(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace octet
