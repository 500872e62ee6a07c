// What the JSON documents of results share.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "formats/json_value.h"
#include "octet/tools/power_use.h"
#include "octet/tools/steadiness.h"
#include "octet/words.h"

namespace octet::report {

using Json = nlohmann::ordered_json;

Json field(const char* name, const Json& value);  // an object with this one

// The text of a result: its schema, "octet.bench.gemm/1", and then its fields. The number rises
// when a field changes its meaning or goes; a new field leaves it as it is.
std::string document(const char* schema, const Json& fields);

// The same in pieces, where lists are long: of a list one element at a time is held as JSON.
class DocumentText {
 public:
  explicit DocumentText(const char* schema) { add(field("schema", schema)); }
  void add(const Json& fields);
  template <class Row>
  void add_list(const char* name, const std::vector<Row>& rows) {
    begin(name, '[');
    for (const Row& row : rows) add_element(row);
    end(']');
  }
  template <class Value>
  void add_object(const char* name, const std::map<std::string, Value>& members) {
    begin(name, '{');
    for (const auto& [key, value] : members) add_element(value, &key);
    end('}');
  }
  std::string take();

 private:
  void begin(const char* name, char bracket);
  void add_element(const Json& element, const std::string* key = nullptr);
  void end(char bracket);

  std::string text_ = "{";
  bool is_first_ = true;  // of the document, list or object
};

// As text; names of files need not be UTF-8, and JSON must be.
std::string valid_text(const Json& json, int indent);

// Null for what was not measured or is not known. What is not finite becomes null by itself.
Json known(const std::string& text);
template <class Number>
Json known(Number value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

// The fields of objects as one object, in this order.
Json joined(std::initializer_list<Json> objects);

// Fields with the names of their members: OCTET_FIELDS(row, m, n) is {"m": row.m, "n": row.n}.
// OCTET_KNOWN_FIELDS gives known() of each.
#define OCTET_FIELD(member) {#member, of.member},
#define OCTET_KNOWN_FIELD(member) {#member, report::known(of.member)},
#define OCTET_OBJECT(field, value, ...)                                                           \
  [](const auto& of) {                                                                            \
    return report::Json::object({NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(field, __VA_ARGS__))}); \
  }(value)
#define OCTET_FIELDS(value, ...) OCTET_OBJECT(OCTET_FIELD, value, __VA_ARGS__)
#define OCTET_KNOWN_FIELDS(value, ...) OCTET_OBJECT(OCTET_KNOWN_FIELD, value, __VA_ARGS__)

}  // namespace octet::report

namespace octet {

// The JSON library finds to_json(json, value) in the namespace of a value, for lists of it as well:
// so those that one file needs are static there, and not in a nameless namespace. This is one whose
// fields have the names of all these members.
#define OCTET_JSON(Type, ...)                                  \
  static void to_json(report::Json& json, const Type& value) { \
    json = OCTET_FIELDS(value, __VA_ARGS__);                   \
  }

// An enum by its word.
template <class Enum>
requires requires { Words<Enum>::list; }
void to_json(report::Json& json, Enum value) { json = word_of(value); }

// Null where nothing reported it.
void to_json(report::Json& json, const PowerUse& power);
void to_json(report::Json& json, const Steadiness& steadiness);

}  // namespace octet
