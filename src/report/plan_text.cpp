// The plan of an engine as a table for people.
#include <fmt/format.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/engine.h"

namespace octet {
namespace {

const char* words_for(Residency where) {
  switch (where) {
    case Residency::device: return "on the device";
    case Residency::host: return "in host memory";
    default: return "streamed from its files";
  }
}

double gigabytes(uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

}  // namespace

std::string plan_text(const EngineInfo& info) try {
  size_t width = 0;
  for (const PartPlace& place : info.plan) width = std::max(width, place.part.size());
  std::string text;
  for (const PartPlace& place : info.plan) {
    text += fmt::format("{:<{}}  {:>8.3f} GB  {}\n", place.part, width, gigabytes(place.bytes),
                        words_for(place.where));
  }
  return text + fmt::format(
                    "{:.3f} GB of memory at hand, about {:.1f} GB of it for the work on a "
                    "picture of 1024 x 1024 pixels\n",
                    gigabytes(info.available_bytes), gigabytes(info.work_bytes));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
