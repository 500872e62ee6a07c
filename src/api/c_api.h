// What the functions of octet/octet.h share: no exception leaves them, structs of other versions
// are understood or refused, and invalid arguments become error sentences.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/invalid_request.h"
#include "base/uncancelled.h"
#include "octet/octet.h"

namespace octet::c_api {

// The last error of this thread; false: there is no memory for the next one, which is now said.
bool forget_error() noexcept;
// Stores the exception being handled for octet_last_error(), and returns its status.
octet_status keep_error() noexcept;

template <class Work>
octet_status guarded(Work&& work) noexcept {
  const Uncancelled uncancelled;
  if (!forget_error()) return OCTET_OUT_OF_MEMORY;
  try {
    work();
    forget_error();  // of a call made by a callback
    return OCTET_OK;
  } catch (...) {
    return keep_error();
  }
}

inline void check_given(const void* pointer, const char* field) {
  check_value(pointer != nullptr, field, "`{}` is NULL", field);
}

// Writes like snprintf.
size_t write_text(const std::string& from, char* text, size_t size);

template <class Make>
size_t guarded_text(char* text, size_t size, Make&& make) noexcept {
  size_t length = 0;
  const octet_status status = guarded([&] {
    check_value(text != nullptr || size == 0, "text", "`text` is NULL, but `size` is {}", size);
    length = write_text(make(), text, size);
  });
  if (status != OCTET_OK && text != nullptr && size > 0) text[0] = '\0';
  return length;
}

// A field that may get a meaning in a later version.
inline void check_reserved(int32_t reserved) {
  check_value(reserved == 0, "reserved", "`reserved` is {}, expected 0", reserved);
}

inline bool flag_of(int32_t flag, const char* field) {
  check_value(flag == 0 || flag == 1, field, "`{}` is {}, expected 0 or 1", field, flag);
  return flag == 1;
}

inline std::string text_or(const char* text, const char* otherwise = "") {
  return text != nullptr ? text : otherwise;
}

// A count that is larger is a mistake, such as -1: seen before memory is read that is not the
// caller's, and long before its bytes pass 64 bits.
template <class T>
constexpr size_t kMostItems = std::is_arithmetic_v<T> ? size_t{1} << 30 : size_t{1} << 16;

template <class T>
std::span<const T> list_of(const T* items, size_t count, const char* field,
                           size_t most = kMostItems<T>) {
  check_value(items != nullptr || count == 0, field, "`{}` is NULL, but its count is {}", field,
              count);
  check_value(count <= most, field, "the count of `{}` is {}, expected at most {}", field, count,
              most);
  return {items, count};
}

// Bytes of a struct in version 1 of the interface: no program's may be smaller.
constexpr size_t first_size(const octet_options*) { return 136; }
constexpr size_t first_size(const octet_request*) { return 104; }
constexpr size_t first_size(const octet_callbacks*) { return 40; }
constexpr size_t first_size(const octet_preview*) { return 40; }
constexpr size_t first_size(const octet_picture*) { return 56; }
constexpr size_t first_size(const octet_report*) { return 88; }
constexpr size_t first_size(const octet_info*) { return 40; }
constexpr size_t first_size(const octet_job_info*) { return 40; }
constexpr size_t first_size(const octet_estimate*) { return 32; }
constexpr size_t first_size(const octet_state*) { return 80; }
constexpr size_t first_size(const octet_weight_rows*) { return 72; }
constexpr size_t first_size(const octet_call*) { return 56; }
constexpr size_t first_size(const octet_plain_weight*) { return 88; }

template <class T>
void check_struct(const T* given, const char* field) {
  constexpr size_t kFirst = first_size(static_cast<const T*>(nullptr));
  static_assert(kFirst <= sizeof(T));
  check_given(given, field);
  const size_t size = given->struct_size;
  check_value(size >= kFirst, "struct_size",
              "`struct_size` of `{}` is {}, expected {}; begin with the struct that its function "
              "octet_..._init() returns",
              field, size, sizeof(T));
  check_value(size <= sizeof(T), "struct_size",
              "`struct_size` of `{}` is {}, and this library knows {}: the program was built for "
              "a newer one",
              field, size, sizeof(T));
}

// A program's struct; fields that its version lacks are zero.
template <class T>
T read_struct(const T* given, const char* field) {
  check_struct(given, field);
  T whole = {};
  std::memcpy(&whole, given, given->struct_size);
  return whole;
}

// Fills a program's struct as far as it goes.
template <class T>
void write_struct(T from, T* to) {
  from.struct_size = to->struct_size;
  std::memcpy(to, &from, to->struct_size);
}

}  // namespace octet::c_api
