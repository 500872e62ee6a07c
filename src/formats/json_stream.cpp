#include "formats/json_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr size_t kJsonBuffer = 256 * 1024;
// Behind the last byte, so that loops over bytes need one test for the end: a quote ends strings,
// and whoever meets it looks whether it is the sentinel.
constexpr size_t kJsonSentinel = 1;
constexpr size_t kMaxScalar = 400;  // of 1e308 written out there are 309 digits

enum JsonByte : uint8_t { kOther, kQuote, kOpen, kClose };

constexpr std::array<uint8_t, 256> kStructure = [] {
  std::array<uint8_t, 256> table = {};
  table['"'] = kQuote;
  table['{'] = table['['] = kOpen;
  table['}'] = table[']'] = kClose;
  return table;
}();

constexpr bool is_json_blank(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

constexpr std::array<bool, 256> kScalarBytes = [] {
  std::array<bool, 256> table = {};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<size_t>(c)] = true;
  for (const char c : {'+', '-', '.'}) table[static_cast<size_t>(c)] = true;
  return table;
}();

// The first quote or backslash; there is one, the sentinel.
const char* string_stop(const char* at) {
  // Eight bytes at a time: a byte of `x` is zero where it equals the quote (or the backslash), and
  // the expression sets its highest bit. A byte above a found one may be marked as well, which the
  // loop behind sorts out.
  constexpr uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
  while (true) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    const uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
    if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & highs) break;
    at += 8;
  }
  while (*at != '"' && *at != '\\') ++at;
  return at;
}

double number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || text.empty()) return std::numeric_limits<double>::quiet_NaN();
  // from_chars tells nothing of whether it was too large or too small.
  if (error == std::errc::result_out_of_range) {
    if (text.find("e-") != text.npos || text.find("E-") != text.npos) return 0;
    const double infinity = std::numeric_limits<double>::infinity();
    return text.starts_with('-') ? -infinity : infinity;
  }
  return value;
}

}  // namespace

// string_stop() reads whole words, and may pass the sentinel by seven bytes.
JsonStream::JsonStream(ByteStream& bytes)
    : bytes_(bytes), buffer_(kJsonBuffer + kJsonSentinel + 8, '"') {
  at_ = end_ = buffer_.data();
  refill();
  if (std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with("\xEF\xBB\xBF")) at_ += 3;
}

void JsonStream::refuse(std::string_view fault) const {
  fail("{}: invalid JSON at byte {}: {}", bytes_.path(), position(), fault);
}

void JsonStream::cut_off() const {
  fail("{}: is cut off at byte {}, inside of its JSON", bytes_.path(), position());
}

// Keeps the bytes from at_ on, and gets more behind them; false at the end of the text.
bool JsonStream::refill() {
  const auto kept = static_cast<size_t>(end_ - at_);
  before_ += static_cast<uint64_t>(at_ - buffer_.data());
  std::memmove(buffer_.data(), at_, kept);
  const size_t count = bytes_.read(std::span(buffer_).subspan(kept, kJsonBuffer - kept));
  at_ = buffer_.data();
  end_ = at_ + kept + count;
  buffer_[kept + count] = '"';
  return count > 0;
}

// The first byte that is not blank; it is not consumed yet.
char JsonStream::peek_byte() {
  while (true) {
    while (is_json_blank(*at_)) ++at_;
    if (at_ != end_) [[likely]]
      return *at_;
    if (!refill()) cut_off();
  }
}

JsonStream::Kind JsonStream::kind() {
  switch (peek_byte()) {
    case '{': return Kind::object;
    case '[': return Kind::array;
    case '"': return Kind::string;
    case 't':
    case 'f':
    case 'n': return Kind::literal;
    default: return Kind::number;
  }
}

void JsonStream::enter(char bracket) {
  if (peek_byte() != bracket) {
    refuse(bracket == '{' ? "expected an object" : "expected an array");
  }
  if (++depth_ > kMaxDepth) {
    refuse(fmt::format("objects and arrays are nested more than {} deep", kMaxDepth));
  }
  ++at_;
  is_first_ = true;
}

void JsonStream::begin_object() { enter('{'); }
void JsonStream::begin_array() { enter('['); }

std::optional<std::string_view> JsonStream::next_key() {
  char byte = peek_byte();
  if (byte == '}') {
    ++at_;
    --depth_;
    is_first_ = false;
    return std::nullopt;
  }
  if (!is_first_) {
    if (byte != ',') refuse("expected a comma or the end of an object");
    ++at_;
    byte = peek_byte();
  }
  is_first_ = false;
  if (byte != '"') refuse("expected a key in quotes");
  const std::string_view key = string();
  // The key may lie in the buffer, which is not to move before the colon was seen.
  while (is_json_blank(*at_)) ++at_;
  if (at_ == end_) {
    scratch_ = std::string(key);
    if (peek_byte() != ':') refuse("expected a colon behind a key");
    ++at_;
    return scratch_;
  }
  if (*at_ != ':') refuse("expected a colon behind a key");
  ++at_;
  return key;
}

bool JsonStream::next_element() {
  const char byte = peek_byte();
  if (byte == ']') {
    ++at_;
    --depth_;
    is_first_ = false;
    return false;
  }
  if (!is_first_) {
    if (byte != ',') refuse("expected a comma or the end of an array");
    ++at_;
    if (peek_byte() == ']') refuse("expected a value behind a comma");
  }
  is_first_ = false;
  return true;
}

// From the opening quote to behind the closing one.
std::string_view JsonStream::string() {
  const char* begin = ++at_;
  const char* stop = string_stop(begin);
  if (stop == end_ || *stop == '\\' || stop - begin > static_cast<ptrdiff_t>(kMaxString)) {
    return string_in_pieces(stop);
  }
  at_ = stop + 1;
  const std::string_view text(begin, static_cast<size_t>(stop - begin));
  if (is_sound_utf8(text)) [[likely]]
    return text;
  scratch_ = with_replacements(text);
  return scratch_;
}

// Of a string with escapes, or that does not end in the buffer; `stop` is its first stop.
std::string_view JsonStream::string_in_pieces(const char* stop) {
  scratch_.clear();
  while (true) {
    const auto count = static_cast<size_t>(stop - at_);
    scratch_.append(at_, std::min(count, kMaxString - std::min(kMaxString, scratch_.size())));
    at_ = stop;
    if (at_ == end_) {
      if (!refill()) cut_off();
    } else if (*at_++ == '"') {
      break;
    } else {
      unescape(scratch_);
      if (scratch_.size() > kMaxString) scratch_.resize(kMaxString);
    }
    stop = string_stop(at_);
  }
  if (!is_sound_utf8(scratch_)) scratch_ = with_replacements(scratch_);
  return scratch_;
}

char JsonStream::take() {
  if (at_ == end_ && !refill()) cut_off();
  return *at_++;
}

// Four hexadecimal digits, or 0x110000, which is not a character, if they are missing.
uint32_t JsonStream::hex_digits() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char digit = take();
    const int nibble = digit >= '0' && digit <= '9'   ? digit - '0'
                       : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                       : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                      : -1;
    if (nibble < 0) {
      --at_;  // take() has just passed it, so that it lies in the buffer
      return 0x110000;
    }
    value = value * 16 + static_cast<uint32_t>(nibble);
  }
  return value;
}

// Behind a backslash.
void JsonStream::unescape(std::string& into) {
  const char byte = take();
  switch (byte) {
    case '"':
    case '\\':
    case '/': into += byte; return;
    case 'b': into += '\b'; return;
    case 'f': into += '\f'; return;
    case 'n': into += '\n'; return;
    case 'r': into += '\r'; return;
    case 't': into += '\t'; return;
    case 'u': break;
    default:
      into += '\\';
      into += byte;
      return;
  }
  uint32_t point = hex_digits();
  if (point >= 0xD800 && point < 0xDC00 && take() == '\\') {
    // A pair of surrogates, or one alone before some other escape.
    if (take() == 'u') {
      const uint32_t low = hex_digits();
      if (low >= 0xDC00 && low < 0xE000) {
        append_character(0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00), into);
        return;
      }
      append_character(0xFFFD, into);
      point = low;
    } else {
      --at_;
      append_character(0xFFFD, into);
      unescape(into);
      return;
    }
  } else if (point >= 0xD800 && point < 0xDC00) {
    --at_;
  }
  const bool is_character = point < 0xD800 || (point >= 0xE000 && point < 0x110000);
  append_character(is_character ? point : 0xFFFD, into);
}

void JsonStream::skip_string() {
  ++at_;
  while (true) {
    at_ = string_stop(at_);
    if (at_ == end_) {
      if (!refill()) cut_off();
    } else if (*at_++ == '"') {
      return;
    } else {
      take();
    }
  }
}

// The text of a number or literal.
std::string_view JsonStream::scalar() {
  if (end_ - at_ <= static_cast<ptrdiff_t>(kMaxScalar)) refill();
  const char* stop = at_;
  while (kScalarBytes[static_cast<uint8_t>(*stop)]) ++stop;
  const std::string_view text(at_, static_cast<size_t>(stop - at_));
  if (text.empty()) refuse("expected a value");
  if (text.size() > kMaxScalar) {
    refuse(fmt::format("a number of more than {} characters", kMaxScalar));
  }
  if (stop == end_ && depth_ > 0) {
    at_ = stop;
    cut_off();
  }
  at_ = stop;
  return text;
}

std::string_view JsonStream::text() {
  switch (kind()) {
    case Kind::string: return string();
    case Kind::number:
    case Kind::literal: return scalar();
    default: skip(); return {};
  }
}

double JsonStream::number() { return number_of(text()); }

std::optional<int64_t> JsonStream::integer() {
  const std::string_view digits = text();
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (stop == end && error == std::errc()) [[likely]]
    return value;
  const double rounded = std::round(number_of(digits));
  if (!(std::abs(rounded) < 9e18)) return std::nullopt;
  return static_cast<int64_t>(rounded);
}

void JsonStream::skip() {
  const Kind next = kind();
  if (next == Kind::string) return skip_string();
  if (next == Kind::number || next == Kind::literal) {
    scalar();
    return;
  }
  skip_to_level_end(0, 0);
}

void JsonStream::leave_object() {
  skip_to_level_end(1, 1);
  --depth_;
  is_first_ = false;
}

// Until as many brackets have closed as have opened, and `levels` more. One bit for each level
// tells whether it is an object; `levels` is 0 or 1, and depth_ counts these already.
void JsonStream::skip_to_level_end(uint64_t objects, int levels) {
  const int outer = depth_ - levels;
  while (true) {
    while (kStructure[static_cast<uint8_t>(*at_)] == kOther) ++at_;
    if (at_ == end_) {
      if (!refill()) cut_off();
      continue;
    }
    switch (kStructure[static_cast<uint8_t>(*at_)]) {
      case kQuote: skip_string(); break;
      case kOpen:
        if (outer + ++levels > kMaxDepth) {
          refuse(fmt::format("objects and arrays are nested more than {} deep", kMaxDepth));
        }
        objects = objects << 1 | (*at_++ == '{' ? 1 : 0);
        break;
      default:
        if ((*at_ == '}') != ((objects & 1) != 0)) refuse("brackets do not match");
        ++at_;
        objects >>= 1;
        if (--levels == 0) return;
    }
  }
}

void JsonStream::expect_end() {
  do {
    while (at_ != end_ && is_json_blank(*at_)) ++at_;
    if (at_ != end_) refuse("there is more text behind the end");
  } while (refill());
}

}  // namespace octet
