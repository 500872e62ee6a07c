// OctetError and its subclasses. Each is also the built-in exception that Python programs expect
// for such an error.
#include <exception>

#include "base/out_of_memory.h"
#include "octet/error.h"
#include "python/bindings.h"

namespace octet::python {
namespace {

PyObject* octet_error = nullptr;
PyObject* invalid_request_type = nullptr;
PyObject* wrong_type_type = nullptr;
PyObject* out_of_memory_type = nullptr;
PyObject* cancelled_type = nullptr;

// Lives as long as the process, like the module.
PyObject* made(nb::module_& module, const char* name, const char* doc, nb::tuple bases) {
  PyObject* type =
      PyErr_NewExceptionWithDoc((std::string("octet.") + name).c_str(), doc, bases.ptr(), nullptr);
  if (type == nullptr) nb::raise_python_error();
  module.attr(name) = nb::borrow(type);
  return type;
}

void set_error(PyObject* type, const std::string& sentence, const std::string& field) {
  nb::object error = nb::borrow(type)(nb::str(sentence.c_str(), sentence.size()));
  error.attr("field") = nb::str(field.c_str(), field.size());
  PyErr_SetObject(type, error.ptr());
}

[[noreturn]] void raise_as(PyObject* type, const std::string& sentence, const std::string& field) {
  set_error(type, sentence, field);
  nb::raise_python_error();
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const InvalidRequest& error) {
    set_error(invalid_request_type, said(error.sentence()), error.field());
  } catch (const Cancelled& error) {
    set_error(cancelled_type, error.what(), "");
  } catch (const OutOfMemory& error) {
    set_error(out_of_memory_type, error.what(), "");
  } catch (const Error& error) {
    set_error(octet_error, error.what(), "");
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  octet_error =
      made(module, "OctetError", "Something failed. `field`: the argument that was wrong, or \"\".",
           nb::make_tuple(nb::borrow(PyExc_RuntimeError)));
  nb::borrow(octet_error).attr("field") = "";
  const nb::object base = nb::borrow(octet_error);
  invalid_request_type = made(module, "InvalidRequest", "An argument is wrong.",
                              nb::make_tuple(base, nb::borrow(PyExc_ValueError)));
  wrong_type_type = made(module, "OctetTypeError",
                         "An argument of the wrong type, or an array of the wrong dtype.",
                         nb::make_tuple(base, nb::borrow(PyExc_TypeError)));
  out_of_memory_type = made(module, "OutOfMemory", "Too little memory, the device's or the host's.",
                            nb::make_tuple(base, nb::borrow(PyExc_MemoryError)));
  cancelled_type = made(module, "Cancelled", "Stopped by cancel().", nb::make_tuple(base));
  nb::register_exception_translator(translate);
}

std::string said(const Sentence& sentence) {
  std::string text;
  bool left_out = false;
  for (const Sentence::Segment& each : sentence.segments()) {
    if (each.is_field && each.text == "prompt") {
      left_out = true;
      continue;
    }
    std::string_view words = each.text;
    constexpr std::string_view kOr = " or ";
    if (left_out && words.starts_with(kOr)) words.remove_prefix(kOr.size());
    left_out = false;
    text += each.is_field ? "`" + each.text + "`" : std::string(words);
  }
  return text;
}

void raise(octet_status status) {
  PyObject* type = octet_error;
  if (status == OCTET_INVALID_REQUEST) type = invalid_request_type;
  if (status == OCTET_CANCELLED) type = cancelled_type;
  if (status == OCTET_OUT_OF_MEMORY) type = out_of_memory_type;
  const std::string sentence = octet_last_error(), field = octet_last_error_field();
  raise_as(type, sentence, field);
}

void raise_error(const std::string& sentence) { raise_as(octet_error, sentence, ""); }

void raise_invalid_request(const std::string& sentence, const std::string& field) {
  raise_as(invalid_request_type, sentence, field);
}

void raise_wrong_type(const std::string& sentence, const std::string& field) {
  raise_as(wrong_type_type, sentence, field);
}

}  // namespace octet::python
