#include "formats/json.h"

#include <iterator>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/text.h"

namespace octet {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Reads the text and tells through `reached` how far the parser has come, because nlohmann reports
// positions with syntax errors only.
struct TrackedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** reached;

  reference operator*() const { return *at; }
  TrackedIterator& operator++() {
    *reached = ++at;
    return *this;
  }
  bool operator==(const TrackedIterator& other) const { return at == other.at; }
};

// Receives nlohmann's events and builds the value, throwing Error at the first thing refused. Json
// is nlohmann's json or ordered_json.
template <class Json>
class Builder {
 public:
  Builder(std::string_view text, const std::string& what)
      : what_(what), begin_(text.data()), reached_(text.data()) {}

  const char** reached() { return &reached_; }
  Json take() { return std::move(root_); }

  bool null() { return place(nullptr) != nullptr; }
  bool boolean(bool value) { return place(value) != nullptr; }
  bool number_integer(typename Json::number_integer_t value) { return place(value) != nullptr; }
  bool number_unsigned(typename Json::number_unsigned_t value) { return place(value) != nullptr; }
  bool number_float(typename Json::number_float_t value, const std::string&) {
    return place(value) != nullptr;
  }
  bool string(std::string& value) { return place(std::move(value)) != nullptr; }
  // Not a JSON type; the interface asks for it.
  bool binary(typename Json::binary_t&) { return false; }

  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = levels_.back();
    const auto [entry, is_new] =
        level.container->template get_ref<typename Json::object_t&>().emplace(name, Json(nullptr));
    level.key = &entry->first;
    level.slot = &entry->second;
    if (!is_new) refuse(fmt::format("the key {} appears twice in one object", location()));
    return true;
  }

  bool parse_error(size_t position, const std::string&, const typename Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while ...".
    std::string_view text = error.what();
    if (const size_t id = text.find("] "); id != text.npos) text.remove_prefix(id + 2);
    if (const size_t column = text.find(", column "); column != text.npos) {
      const size_t colon = text.find(": ", column);
      if (colon != text.npos) text.remove_prefix(colon + 2);
    }
    fail("{}: invalid JSON at byte {}: {}", what_, position, one_line(text));
  }

 private:
  struct Level {
    Json* container;
    const std::string* key;  // of the member being read, in an object
    Json* slot;              // where its value goes
  };

  // Stored values stay where they are while something can point at them: neither an array nor an
  // object grows while its last value is still open.
  Json* place(Json value) {
    if (++values_ > kMaxJsonValues) {
      refuse(fmt::format("there are more than {} values", kMaxJsonValues));
    }
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.container->is_array()) {
      auto& elements = level.container->template get_ref<typename Json::array_t&>();
      elements.push_back(std::move(value));
      return &elements.back();
    }
    *level.slot = std::move(value);
    return level.slot;
  }

  bool open(Json container) {
    if (levels_.size() == kMaxJsonDepth) {
      refuse(fmt::format("objects and arrays are nested more than {} deep", kMaxJsonDepth));
    }
    levels_.push_back({place(std::move(container)), nullptr, nullptr});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  // The keys on the way to the member being read: "layer.weight" > "shape".
  std::string location() const {
    std::string path;
    for (const Level& level : levels_) {
      if (level.key == nullptr) continue;
      if (!path.empty()) path += " > ";
      path += in_quotes(*level.key);
    }
    return path;
  }

  [[noreturn]] void refuse(const std::string& fault) const {
    fail("{}: invalid JSON at byte {}: {}", what_, reached_ - begin_, fault);
  }

  const std::string& what_;
  const char* begin_;
  const char* reached_;
  Json root_;
  std::vector<Level> levels_;
  size_t values_ = 0;
};

template <class Json>
Json parse(std::string_view text, const std::string& what) {
  check(!text.empty(), "{}: is empty, expected JSON", what);
  const size_t nul = text.find('\0');
  check(nul == text.npos, "{}: invalid JSON at byte {}: a NUL byte in the text", what, nul);
  Builder<Json> builder(text, what);
  Json::sax_parse(TrackedIterator{text.data(), builder.reached()},
                  TrackedIterator{text.data() + text.size(), builder.reached()}, &builder);
  return builder.take();
}

template <class Json>
std::string described(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return fmt::format("an array of {}", value.size());
    case Json::value_t::string: return in_quotes(value.template get_ref<const std::string&>());
    default: return value.dump();
  }
}

}  // namespace

json parse_json(std::string_view text, const std::string& what) { return parse<json>(text, what); }

ordered_json parse_ordered_json(std::string_view text, const std::string& what) {
  check(text.size() <= kMaxOrderedJsonBytes, "{}: is {} bytes long, above the limit of {}", what,
        text.size(), kMaxOrderedJsonBytes);
  return parse<ordered_json>(text, what);
}

json read_json_file(const std::string& path) {
  const MappedFile file(path);
  return file.read([&](std::span<const std::byte> bytes) {
    check(bytes.size() <= kMaxJsonBytes,
          "{}: is {} bytes long, above the limit of {} for JSON files", path, bytes.size(),
          kMaxJsonBytes);
    return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  });
}

std::string describe(const json& value) { return described(value); }
std::string describe(const ordered_json& value) { return described(value); }

bool is_same(const json& a, const json& b) { return a == b; }

}  // namespace octet
