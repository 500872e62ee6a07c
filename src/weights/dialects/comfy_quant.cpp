#include "weights/dialects/comfy_quant.h"

#include <algorithm>

#include "base/error.h"
#include "base/per_thread.h"
#include "formats/text.h"

namespace octet::weights {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "_quantization_metadata";
constexpr size_t kMaxBlobBytes = 65'536;
constexpr size_t kMaxMetadataBytes = 16'000'000;
constexpr int64_t kDefaultGroup = 256;
constexpr int64_t kGroups[] = {4, 16, 64, 256, 1024};

// The field, there or in the object "params"; nullptr when absent.
const json* field_of(const json& root, const char* key, const std::string& what) {
  if (const auto found = root.find(key); found != root.end()) return &*found;
  const auto params = root.find("params");
  if (params == root.end()) return nullptr;
  check(params->is_object(), "{}: \"params\" is {}, expected an object", what, describe(*params));
  const auto found = params->find(key);
  return found == params->end() ? nullptr : &*found;
}

bool flag_of(const json& root, const char* key, const std::string& what) {
  const json* value = field_of(root, key, what);
  if (value == nullptr) return false;
  check(value->is_boolean(), "{}: \"{}\" is {}, expected true or false", what, key,
        describe(*value));
  return value->get<bool>();
}

int64_t group_of(const json& root, const std::string& what) {
  const json* value = field_of(root, "convrot_groupsize", what);
  if (value == nullptr) return kDefaultGroup;
  const bool known =
      value->is_number_unsigned() && std::ranges::any_of(kGroups, [&](int64_t group) {
        return value->get<uint64_t>() == static_cast<uint64_t>(group);
      });
  check(known, "{}: \"convrot_groupsize\" is {}, expected 4, 16, 64, 256 or 1024", what,
        describe(*value));
  return value->get<int64_t>();
}

// The layers of the metadata entry; nullptr without one. Every module asks, so the last text that
// was parsed is kept.
const json* layers_in_metadata(const Checkpoint& checkpoint) {
  const auto entry = checkpoint.metadata().find(kMetadata);
  if (entry == checkpoint.metadata().end()) return nullptr;
  struct Parsed {
    std::string text;
    json root;
  };
  static PerThread<Parsed> parsed_by_thread;
  auto& [text, root] = parsed_by_thread.get();
  if (root.is_null() || text != entry->second) {
    const std::string what = fmt::format("{}: metadata entry \"{}\"", checkpoint.path(), kMetadata);
    check(entry->second.size() <= kMaxMetadataBytes, "{}: is {} bytes long, above the limit of {}",
          what, entry->second.size(), kMaxMetadataBytes);
    json parsed = parse_json(entry->second, what);
    check(parsed.is_object() && parsed.contains("layers") && parsed["layers"].is_object(),
          "{}: expected an object with an object \"layers\" in it", what);
    root = std::move(parsed);
    text = entry->second;
  }
  return &root["layers"];
}

// The module's entry in the metadata, whose names may lack the prefix of those of the tensors.
const json* entry_in_metadata(const Checkpoint& checkpoint, const std::string& module) {
  const json* layers = layers_in_metadata(checkpoint);
  if (layers == nullptr) return nullptr;
  for (const std::string_view prefix : kComfyPrefixes) {
    if (!module.starts_with(prefix)) continue;
    const auto found = layers->find(module.substr(prefix.size()));
    if (found != layers->end()) return &*found;
  }
  return nullptr;
}

}  // namespace

ComfyQuant parse_comfy_quant(const json& root, const std::string& what) {
  check(root.is_object(), "{}: is {}, expected an object", what, describe(root));
  const auto format = root.find("format");
  check(format != root.end() && format->is_string(), "{}: \"format\" is {}, expected a string",
        what, format == root.end() ? "missing" : describe(*format));
  ComfyQuant made;
  made.format = format->get<std::string>();
  made.full_precision = flag_of(root, "full_precision_matrix_mult", what);
  if (flag_of(root, "convrot", what)) made.rotation_group = group_of(root, what);
  return made;
}

bool has_comfy_quant(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".comfy_quant") != nullptr ||
         entry_in_metadata(checkpoint, module) != nullptr;
}

ComfyQuant read_comfy_quant(const Checkpoint& checkpoint, const std::string& module) {
  const std::string name = module + ".comfy_quant";
  const TensorInfo* blob = checkpoint.find(name);
  if (blob == nullptr) {
    const json* entry = entry_in_metadata(checkpoint, module);
    check(entry != nullptr, "{}: tensor {} is missing", checkpoint.path(), Quoted{name});
    return parse_comfy_quant(*entry, fmt::format("{}: metadata entry \"{}\": layer {}",
                                                 checkpoint.path(), kMetadata, in_quotes(module)));
  }
  const std::string what = fmt::format("{}: tensor {}", checkpoint.path(), in_quotes(name));
  check(blob->dtype == DType::u8 && blob->shape.size() == 1 && blob->bytes() <= kMaxBlobBytes,
        "{} is {} {}, expected U8 with the bytes of a JSON text of at most {}", what,
        name_of(blob->dtype), to_string(blob->shape), kMaxBlobBytes);
  const std::span<const std::byte> bytes = checkpoint.bytes(name);
  return parse_comfy_quant(
      parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, what), what);
}

}  // namespace octet::weights
