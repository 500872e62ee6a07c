// Plain structs of the C++ interface as Python objects: attributes to read, a repr, and as_dict().
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <type_traits>

#include "octet/job.h"
#include "python/bindings.h"

namespace octet::python {

// `value` with all its records as dicts.
nb::object plain(nb::handle value);
std::string record_text(nb::handle record);
// What pickle writes: its fields, from which octet._records makes an object of Python.
nb::tuple reduced(nb::handle record);

// Members under their own names: record.OCTET_MEMBERS(Type, one, two). A macro over a list takes as
// many rescans as it has names: these are 64.
#define OCTET_RESCAN(...) __VA_ARGS__
#define OCTET_RESCAN_4(...) OCTET_RESCAN(OCTET_RESCAN(OCTET_RESCAN(OCTET_RESCAN(__VA_ARGS__))))
#define OCTET_RESCAN_16(...) \
  OCTET_RESCAN_4(OCTET_RESCAN_4(OCTET_RESCAN_4(OCTET_RESCAN_4(__VA_ARGS__))))
#define OCTET_RESCAN_64(...) \
  OCTET_RESCAN_16(OCTET_RESCAN_16(OCTET_RESCAN_16(OCTET_RESCAN_16(__VA_ARGS__))))
#define OCTET_PARENTHESES ()
#define OCTET_NEXT_MEMBER() OCTET_EACH_MEMBER
#define OCTET_EACH_MEMBER(type, name, ...) \
  field(#name, &type::name) __VA_OPT__(.OCTET_NEXT_MEMBER OCTET_PARENTHESES(type, __VA_ARGS__))
#define OCTET_MEMBERS(type, ...) OCTET_RESCAN_64(OCTET_EACH_MEMBER(type, __VA_ARGS__))

template <class T>
class Record {
 public:
  Record(nb::module_& module, const char* name, const char* doc) : class_(module, name, doc) {
    class_.def("__repr__", &record_text);
    class_.def("as_dict", &plain, "The same as dicts and lists, for JSON.");
    if constexpr (!std::is_same_v<T, Job>) class_.def("__reduce__", &reduced);
  }
  ~Record() { class_.attr("__match_args__") = nb::tuple(fields_); }
  Record(const Record&) = delete;

  template <class Value>
  Record& field(const char* name, Value T::*member) {
    class_.def_ro(name, member);
    fields_.append(name);
    return *this;
  }

  // Anything else that classes have.
  template <class Function>
  Record& method(const char* name, Function&& function) {
    class_.def(name, function);
    return *this;
  }

  // For a value that is not a member itself.
  template <class Read>
  Record& value(const char* name, Read&& read) {
    class_.def_prop_ro(name, read);
    fields_.append(name);
    return *this;
  }

 private:
  nb::class_<T> class_;
  nb::list fields_;
};

}  // namespace octet::python
