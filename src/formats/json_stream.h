// JSON that is too large for memory: values are read one after the other, and nothing is kept.
//
//   for (json.begin_object(); const auto key = json.next_key();) {
//     if (*key == "ts") ts = json.number(); else json.skip();
//   }
//
// Each value has to be read or skipped before the next key or element. What profilers
// have written although it is no JSON is read all the same: NaN, Infinity, control characters
// inside of strings, backslashes of Windows paths. What is skipped is checked for its brackets and
// quotes alone. Nothing is said about equal keys: the caller sees both.
//
// Errors name the path and the byte, and whether the text is cut off there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/byte_stream.h"

namespace octet {

class JsonStream {
 public:
  static constexpr int kMaxDepth = 64;
  // Longer strings are cut, never held: what is behind is read and left out.
  static constexpr size_t kMaxString = 64 * 1024;

  explicit JsonStream(ByteStream& bytes);

  enum class Kind { object, array, string, number, literal };
  // Of the value that comes next. NaN and Infinity are numbers.
  Kind kind();

  void begin_object();
  // Valid until the next call of anything; nothing at the end of the object.
  std::optional<std::string_view> next_key();
  // In place of further calls of next_key(): to the end of the object.
  void leave_object();
  void begin_array();
  bool next_element();

  // A string without escapes and of valid UTF-8: bytes that are not become U+FFFD. Of a number or a
  // literal its text, of an object or array nothing. Valid until the next call of anything.
  std::string_view text();
  // Also of a string that holds one. NaN for anything else; what is too large is infinite.
  double number();
  // The same as a whole number; nothing where it is none, or does not fit.
  std::optional<int64_t> integer();
  void skip();

  // Throws Error unless only blanks are left.
  void expect_end();

  // Of the text that has been read.
  uint64_t position() const { return before_ + static_cast<uint64_t>(at_ - buffer_.data()); }

 private:
  [[noreturn]] void refuse(std::string_view fault) const;
  [[noreturn]] void cut_off() const;
  bool refill();
  char peek_byte();
  void enter(char bracket);
  void skip_string();
  void skip_to_level_end(uint64_t objects, int levels);
  std::string_view string();
  std::string_view string_in_pieces(const char* stop);
  void unescape(std::string& into);
  uint32_t hex_digits();
  char take();
  std::string_view scalar();

  ByteStream& bytes_;
  std::vector<char> buffer_;
  const char* at_;
  const char* end_;
  uint64_t before_ = 0;  // bytes in front of the buffer
  int depth_ = 0;
  bool is_first_ = false;  // no key or element was read since the last opening bracket
  std::string scratch_;
};

}  // namespace octet
