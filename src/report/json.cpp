#include "report/json.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/escaped_text.h"

namespace octet::report {

namespace {

// As JSON escapes control characters below a space, so all others: a document may go to a terminal.
std::string without_raw_controls(std::string json) {
  constexpr std::string_view kLeads = "\x7f\xc2\xd8\xe2";  // bytes with which the others begin
  if (json.find_first_of(kLeads) == json.npos) return json;
  std::string text;
  for (size_t begin = 0; begin < json.size();) {
    const size_t end = std::min(json.find('\n', begin), json.size());
    text += without_controls(std::string_view(json).substr(begin, end - begin));
    if (end < json.size()) text += '\n';
    begin = end + 1;
  }
  return text;
}

// Line breaks are those of the layout: within strings they are escaped.
void append_indented(std::string& text, std::string_view json, size_t columns) {
  for (const char byte : json) {
    text += byte;
    if (byte == '\n') text.append(columns, ' ');
  }
}

}  // namespace

std::string document(const char* schema, const Json& fields) {
  DocumentText text(schema);
  text.add(fields);
  return text.take();
}

void DocumentText::add(const Json& fields) {
  for (const auto& [name, value] : fields.items()) {
    text_ += is_first_ ? "\n  " : ",\n  ";
    is_first_ = false;
    text_ += valid_text(name, 0) + ": ";
    append_indented(text_, valid_text(value, 2), 2);
  }
}

void DocumentText::begin(const char* name, char bracket) {
  text_ += is_first_ ? "\n  \"" : ",\n  \"";
  text_ += name;
  text_ += "\": ";
  text_ += bracket;
  is_first_ = true;
}

void DocumentText::add_element(const Json& element, const std::string* key) {
  text_ += is_first_ ? "\n    " : ",\n    ";
  is_first_ = false;
  if (key != nullptr) text_ += valid_text(*key, 0) + ": ";
  append_indented(text_, valid_text(element, 2), 4);
}

void DocumentText::end(char bracket) {
  if (!is_first_) text_ += "\n  ";
  text_ += bracket;
  is_first_ = false;
}

std::string DocumentText::take() {
  text_ += "\n}\n";
  return std::move(text_);
}

std::string valid_text(const Json& json, int indent) {
  return without_raw_controls(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json field(const char* name, const Json& value) { return {{name, value}}; }

Json joined(std::initializer_list<Json> objects) {
  Json all = Json::object();
  for (const Json& object : objects) all.update(object);
  return all;
}

}  // namespace octet::report

namespace octet {

void to_json(report::Json& json, const PowerUse& power) {
  json = nullptr;
  if (!power.is_known()) return;
  json = report::joined(
      {OCTET_FIELDS(power, samples),
       OCTET_KNOWN_FIELDS(power, mean_w, max_w, limit_w, joules, mean_mhz, max_celsius),
       OCTET_FIELDS(power, power_capped, too_hot)});
}

void to_json(report::Json& json, const Steadiness& steadiness) {
  json = OCTET_FIELDS(steadiness, spread, reliable);
}

}  // namespace octet
