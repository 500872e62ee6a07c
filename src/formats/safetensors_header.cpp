#include "formats/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "formats/json_value.h"
#include "formats/safetensors.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr int64_t kDataAlignment = 64;

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

std::vector<TensorInfo> lay_out_tensors(const std::string& path,
                                        const std::vector<TensorDeclaration>& tensors) {
  std::vector<TensorInfo> layout;
  std::set<std::string_view> names;
  for (const TensorDeclaration& tensor : tensors) {
    check(is_utf8(tensor.name), "{}: the tensor name {} is not UTF-8", path, Quoted{tensor.name});
    check(tensor.name != kMetadataKey, "{}: a tensor cannot be named {}, which the format reserves",
          path, kMetadataKey);
    check(names.insert(tensor.name).second, "{}: tensor {}: the name was given twice", path,
          Quoted{tensor.name});
    TensorInfo& info = layout.emplace_back();
    info.name = tensor.name;
    info.dtype = tensor.dtype;
    info.shape = tensor.shape;
    info.end = storage_bytes(path, tensor.name, tensor.dtype, tensor.shape);
  }
  std::ranges::stable_sort(layout, [](const TensorInfo& a, const TensorInfo& b) {
    return alignment_of(a.dtype) > alignment_of(b.dtype);
  });
  uint64_t offset = 0;
  for (TensorInfo& info : layout) {
    const auto end = checked_add(offset, info.end);
    check(end.has_value(), "{}: tensor {}: the file size overflows 64 bits", path,
          Quoted{info.name});
    info.begin = offset;
    info.end = *end;
    offset = *end;
  }
  return layout;
}

// Written by hand rather than as one JSON value, to keep the header in the order of the data.
std::string header_bytes(const std::string& path, const std::vector<TensorInfo>& layout,
                         const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += json_string(std::string(kMetadataKey)) + ":{";
    for (const auto& [key, value] : metadata) {
      check(is_utf8(key) && is_utf8(value), "{}: the metadata entry {} is not UTF-8", path,
            Quoted{key});
      if (!text.ends_with('{')) text += ',';
      text += json_string(key) + ':' + json_string(value);
    }
    text += '}';
  }
  for (const TensorInfo& info : layout) {
    if (text.size() > 1) text += ',';
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        json_string(info.name), name_of(info.dtype), fmt::join(info.shape, ","),
                        info.begin, info.end);
  }
  text += '}';
  const auto size = static_cast<int64_t>(text.size());
  text.append(static_cast<size_t>(round_up(size + 8, kDataAlignment) - 8 - size), ' ');
  check(text.size() <= kMaxSafetensorsHeader,
        "{}: the header would take {} bytes, above the limit of {}; write several files", path,
        text.size(), kMaxSafetensorsHeader);
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  return length + text;
}

}  // namespace octet
