// compare() for those who have to know what it is about to run.
#pragma once

#include <functional>
#include <string_view>

#include "octet/tools/compare.h"

namespace octet::measure {

// Both models as they will run: with paths for names of the hub, and not guided where no step is.
using OnChecked = std::function<void(const ModelOptions& a, const ModelOptions& b)>;

// How sentences call what is done and its two sides.
struct ComparedWords {
  std::string_view command = "compare", a = "A", b = "B", whole = "a comparison";
};

// `checked` is called when nothing is wrong with the request, before either model is loaded.
CompareReport compare_models(const CompareRequest& request, const CompareCallbacks& callbacks,
                             const OnChecked& checked, const ComparedWords& words = {});

}  // namespace octet::measure
