// The rows of kernel_names.json, in its order. Only for kernel_names.cpp and the tests: whether a
// row is right is a question for the tests, not for those who ask for a name.
#pragma once

#include <string>
#include <vector>

#include "audit/trace.h"
#include "audit/work_class.h"

namespace octet::audit {

struct NameRow {
  std::string library;
  std::string pattern;  // see glob.h; over the whole name
  WorkClass work = WorkClass::unknown;
  ScalarType type = ScalarType::unknown;
  std::string example, source;  // a name as profilers write it, and where it was found
};

struct NameRows {
  std::vector<NameRow> kernels, ops;
};

// Read once. Throws Error where the file is no good, which the tests rule out.
const NameRows& name_rows();

}  // namespace octet::audit
