#include "weights/dialects/nf4_state.h"

#include <cmath>

#include "base/error.h"

namespace octet::weights {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxExtent = uint64_t{1} << 31;

const json& member(const json& root, const char* key, const std::string& what) {
  const auto found = root.find(key);
  check(found != root.end(), "{}: has no \"{}\"", what, key);
  return *found;
}

int64_t extent(const json& value, const char* key, const std::string& what) {
  check(value.is_number_unsigned() && value.get<uint64_t>() > 0 &&
            value.get<uint64_t>() <= kMaxExtent,
        "{}: \"{}\" contains {}, expected an integer from 1 to 2^31", what, key, describe(value));
  return value.get<int64_t>();
}

}  // namespace

Nf4State parse_nf4_state(const json& root, const std::string& what) {
  check(root.is_object(), "{}: is {}, expected an object", what, describe(root));
  Nf4State state;
  const json& type = member(root, "quant_type", what);
  check(type == "nf4" || type == "fp4", "{}: \"quant_type\" is {}, expected \"nf4\" or \"fp4\"",
        what, describe(type));
  state.quant_type = type.get<std::string>();
  state.block = extent(member(root, "blocksize", what), "blocksize", what);
  const json& shape = member(root, "shape", what);
  check(shape.is_array() && shape.size() == 2, "{}: \"shape\" is {}, expected an array of 2", what,
        describe(shape));
  state.rows = extent(shape[0], "shape", what);
  state.k = extent(shape[1], "shape", what);
  if (!root.contains("nested_blocksize")) return state;
  state.nested_block = extent(root["nested_blocksize"], "nested_blocksize", what);
  const json& offset = member(root, "nested_offset", what);
  check(offset.is_number() && std::isfinite(static_cast<float>(offset.get<double>())),
        "{}: \"nested_offset\" is {}, expected a number", what, describe(offset));
  state.nested_offset = static_cast<float>(offset.get<double>());
  return state;
}

}  // namespace octet::weights
