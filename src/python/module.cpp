// The module octet._octet.
#include "python/bindings.h"

// PyInit_octet_module(), for PyInit__octet() below.
NB_MODULE(octet_module, module) {
  using namespace octet::python;
  // Devices live in the package's caches until the interpreter ends, and would count as leaks.
  nb::set_leak_warnings(false);
  module.doc() = "Octet's C and C++ interface. Use the package `octet`, which checks arguments.";
  module.attr("__version__") = octet_version();
  module.attr("commit") = octet_commit();
  module.attr("abi_version") = octet_abi_version();
  module.attr("F32") = static_cast<int>(OCTET_F32);
  module.attr("BF16") = static_cast<int>(OCTET_BF16);
  module.attr("F16") = static_cast<int>(OCTET_F16);
  module.attr("I8") = static_cast<int>(OCTET_I8);
  module.attr("I32") = static_cast<int>(OCTET_I32);
  bind_errors(module);
  bind_calls(module);
  bind_int8_mm(module);
  bind_files(module);
  bind_engine(module);
  bind_checkpoint(module);
}

// What Python calls. What ends with one interpreter would end for all: its end would wait for ever.
// So others are refused, before nanobind forgets the types of the main one. (From 3.12 on Python
// refuses by itself.)
extern "C" NB_EXPORT PyObject* PyInit__octet() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return PyInit_octet_module();
  PyErr_SetString(
      PyExc_ImportError,
      "octet cannot be imported in a subinterpreter, expected the main one; use processes");
  return nullptr;
}
