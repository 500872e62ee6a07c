// Reads a JSON object that a client sent, field by field: each with its type and its bounds. What
// is wrong is thrown as Refused (400) with one sentence, and the field as `param`.
//
//   Fields fields(body, "the body");
//   const auto steps = fields.integer("steps", 1, 100);  // nothing: absent, or null
//   fields.refuse_unknown();
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "octet/words.h"
#include "server/routes/error_objects.h"
#include "server/routes/json.h"

namespace octet::server {

class Fields {
 public:
  // `what` names the object in sentences, `inside` its fields: "lora[1]." of "lora[1].name".
  explicit Fields(const Json& object, const std::string& what = "the body",
                  std::string inside = {});

  // Null if it is absent or null. Each field that was asked for is a known one.
  const Json* find(const std::string& name);
  std::optional<std::string> text(const std::string& name, size_t max_bytes);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<uint64_t> seed(const std::string& name);
  std::optional<double> number(const std::string& name, double low, double high);
  std::optional<bool> truth(const std::string& name);
  const Json* list(const std::string& name, size_t longest);

  // One of these texts.
  std::optional<std::string> choice(const std::string& name, const std::vector<std::string>& of);
  template <class Enum>
  std::optional<Enum> word(const std::string& name) {
    const auto text = choice(name, word_list<Enum>());
    if (!text) return std::nullopt;
    return from_word<Enum>(*text);
  }

  std::vector<std::string> unknown() const;  // those that nobody asked for
  void refuse_unknown() const;
  std::string path(const std::string& name) const { return inside_ + name; }

 private:
  [[noreturn]] void refuse_value(const std::string& name, const Json& found,
                                 const std::string& expected) const;

  const Json& object_;
  std::string inside_;
  std::set<std::string> known_;
};

}  // namespace octet::server
