#include "formats/json_value.h"

#include <iterator>
#include <memory>
#include <string>
#include <utility>

namespace octet {
namespace {

// The values of an array or an object: the first of them, and how to drop the last. Where there was
// no memory for an array or an object, values say that they are one, and point to none.
template <class Json>
class JsonChildren {
 public:
  explicit JsonChildren(Json& of) : of_(of) {}

  size_t count() const {
    if (const auto* array = of_.template get_ptr<const typename Json::array_t*>()) {
      return array->size();
    }
    const auto* object = of_.template get_ptr<const typename Json::object_t*>();
    return object != nullptr ? object->size() : 0;
  }
  Json& first() const { return *of_.begin(); }
  Json take_last() const {
    if (auto* array = of_.template get_ptr<typename Json::array_t*>()) {
      Json last = std::move(array->back());
      array->pop_back();
      return last;
    }
    auto& object = *of_.template get_ptr<typename Json::object_t*>();
    const auto at = std::prev(object.end());
    Json last = std::move(at->second);
    object.erase(at);
    return last;
  }

 private:
  Json& of_;
};

// Leaves `top` with a null at most. The tree is taken apart while it is walked, and the way back
// is in the tree: the first child of each value on the way makes room for the value's parent.
template <class Json>
void empty_tree(Json& top) {
  if (JsonChildren(top).count() == 0) return;
  Json parent;  // of `value`; null at the top
  Json value = std::move(top);
  for (;;) {
    // Down along first children, up to one that has none.
    while (JsonChildren(value).count() > 0) {
      Json first = std::exchange(JsonChildren(value).first(), std::move(parent));
      parent = std::move(value);
      value = std::move(first);
    }
    // On to another child, or to the parent of one that has no other.
    while (JsonChildren(parent).count() == 1) {
      Json above = std::move(JsonChildren(parent).first());
      parent = std::move(above);
    }
    if (JsonChildren(parent).count() == 0) return;
    value = JsonChildren(parent).take_last();
  }
}

template <class T>
void release(T* owned) {
  if (owned == nullptr) return;
  std::allocator<T> allocator;
  std::destroy_at(owned);
  allocator.deallocate(owned, 1);
}

// Value is the union of pointers in a Json.
template <class Json, class Value>
void destroy_json(Value& value, typename Json::value_t type) {
  switch (type) {
    case Json::value_t::object:
      if (value.object != nullptr) {
        for (auto& [key, child] : *value.object) empty_tree(child);
      }
      return release(value.object);
    case Json::value_t::array:
      if (value.array != nullptr) {
        for (Json& child : *value.array) empty_tree(child);
      }
      return release(value.array);
    case Json::value_t::string: return release(value.string);
    case Json::value_t::binary: return release(value.binary);
    default: return;
  }
}

template <class Json>
bool is_string(const Json& value, const char* text) {
  const auto* string = value.template get_ptr<const std::string*>();
  return string != nullptr && *string == text;
}

}  // namespace
}  // namespace octet

namespace nlohmann {

bool operator==(const json& value, const char* text) noexcept {
  return octet::is_string(value, text);
}

bool operator==(const ordered_json& value, const char* text) noexcept {
  return octet::is_string(value, text);
}

template <>
void basic_json<>::json_value::destroy(value_t type) {
  octet::destroy_json<basic_json>(*this, type);
}

template <>
void basic_json<ordered_map>::json_value::destroy(value_t type) {
  octet::destroy_json<basic_json>(*this, type);
}

}  // namespace nlohmann
