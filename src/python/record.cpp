#include "python/record.h"

namespace octet::python {
namespace {

bool is_record(nb::handle value) {
  return nb::hasattr(value.type(), "__match_args__") && nb::hasattr(value, "as_dict");
}

}  // namespace

nb::object plain(nb::handle value) {
  if (is_record(value)) {
    nb::dict fields;
    for (nb::handle name : value.type().attr("__match_args__")) {
      fields[name] = plain(value.attr(name));
    }
    return fields;
  }
  if (nb::isinstance<nb::dict>(value)) {
    nb::dict items;
    for (auto [key, item] : nb::borrow<nb::dict>(value)) items[key] = plain(item);
    return items;
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    nb::list items;
    for (nb::handle item : value) items.append(plain(item));
    return items;
  }
  return nb::borrow(value);
}

nb::tuple reduced(nb::handle record) {
  nb::dict fields;
  for (nb::handle name : record.type().attr("__match_args__")) fields[name] = record.attr(name);
  return nb::make_tuple(nb::module_::import_("octet._records").attr("restored"),
                        nb::make_tuple(record.type().attr("__name__"), fields));
}

std::string record_text(nb::handle record) {
  std::string text = nb::cast<std::string>(record.type().attr("__name__")) + "(";
  const char* separator = "";
  for (nb::handle name : record.type().attr("__match_args__")) {
    text += separator + nb::cast<std::string>(name) + "=";
    text += nb::cast<std::string>(nb::repr(record.attr(name)));
    separator = ", ";
  }
  return text + ")";
}

}  // namespace octet::python
