#include "formats/safetensors.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "formats/json.h"
#include "formats/text.h"

namespace octet {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;  // before the header

std::string known_dtypes() {
  std::string list;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (i > 0) list += ", ";
    list += name_of(static_cast<DType>(i));
  }
  return list;
}

// Reads one member of the header: "name": {"dtype": ..., "shape": [...], "data_offsets": [b, e]}.
class TensorEntry {
 public:
  TensorEntry(const std::string& path, const std::string& name, const json& entry)
      : path_(path), name_(name), entry_(entry) {}

  TensorInfo parse(uint64_t data_size) const {
    if (!entry_.is_object()) {
      fail("{}: tensor {}: its entry is {}, expected an object", path_, in_quotes(name_),
           describe(entry_));
    }
    for (const auto& [key, value] : entry_.items()) {
      check(key == "dtype" || key == "shape" || key == "data_offsets",
            "{}: tensor {}: its entry has the unknown key {}", path_, Quoted{name_}, Quoted{key});
    }
    TensorInfo info;
    info.name = name_;
    info.dtype = dtype();
    info.shape = shape();
    std::tie(info.begin, info.end) = offsets(data_size);
    const uint64_t expected = storage_bytes(path_, name_, info.dtype, info.shape);
    if (info.bytes() != expected) {
      fail("{}: tensor {}: its data_offsets [{}, {}] span {} bytes, but {} {} has a size of {}",
           path_, in_quotes(name_), info.begin, info.end, info.bytes(), name_of(info.dtype),
           to_string(info.shape), expected);
    }
    return info;
  }

 private:
  const json& member(const char* key) const {
    const auto found = entry_.find(key);
    check(found != entry_.end(), "{}: tensor {}: its entry has no {}", path_, Quoted{name_},
          Quoted{key});
    return *found;
  }

  DType dtype() const {
    const json& value = member("dtype");
    const auto* name = value.get_ptr<const std::string*>();
    if (name == nullptr) {
      fail("{}: tensor {}: its dtype is {}, expected a string", path_, in_quotes(name_),
           describe(value));
    }
    const auto dtype = dtype_from_name(*name);
    if (!dtype) {
      fail("{}: tensor {}: its dtype {} is unknown; known are {}", path_, in_quotes(name_),
           in_quotes(*name), known_dtypes());
    }
    return *dtype;
  }

  FileShape shape() const {
    const json& value = member("shape");
    if (!value.is_array()) {
      fail("{}: tensor {}: its shape is {}, expected an array", path_, in_quotes(name_),
           describe(value));
    }
    FileShape result;
    result.reserve(value.size());
    for (const json& extent : value) {
      result.push_back(static_cast<int64_t>(integer(extent, "shape")));
    }
    return result;
  }

  std::pair<uint64_t, uint64_t> offsets(uint64_t data_size) const {
    const json& value = member("data_offsets");
    if (!value.is_array() || value.size() != 2) {
      fail("{}: tensor {}: its data_offsets are {}, expected an array of 2", path_,
           in_quotes(name_), describe(value));
    }
    const uint64_t begin = integer(value[0], "data_offsets");
    const uint64_t end = integer(value[1], "data_offsets");
    check(begin <= end, "{}: tensor {}: its data_offsets [{}, {}] are reversed", path_,
          Quoted{name_}, begin, end);
    check(end <= data_size,
          "{}: tensor {}: its data_offsets [{}, {}] reach beyond the {} bytes of data in the file, "
          "which may be truncated",
          path_, Quoted{name_}, begin, end, data_size);
    return {begin, end};
  }

  // Only plain digits: nlohmann keeps "-0" as a signed integer and "1e3" or 2^64 as a float.
  uint64_t integer(const json& value, const char* key) const {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kMax) {
      fail("{}: tensor {}: its {} contains {}, expected integers from 0 to 2^63-1", path_,
           in_quotes(name_), key, describe(value));
    }
    return value.get<uint64_t>();
  }

  const std::string& path_;
  const std::string& name_;
  const json& entry_;
};

std::map<std::string, std::string> parse_metadata(const json& value, const std::string& path) {
  check(value.is_object(), "{}: header: {} is {}, expected an object of strings", path,
        kMetadataKey, describe(value));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    check(text.is_string(), "{}: header: the value of {} in {} is {}, expected a string", path,
          Quoted{key}, kMetadataKey, describe(text));
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

// Sorts the tensors by their data and demands that they cover it exactly.
void check_cover(std::vector<TensorInfo>& tensors, uint64_t data_size, const std::string& path) {
  std::ranges::sort(tensors, [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  std::string_view before;  // the name of the tensor that ends there
  for (const TensorInfo& tensor : tensors) {
    check(tensor.begin <= covered,
          "{}: tensor {}: its data begins at byte {}, but the tensors before it end at byte {}; "
          "a gap is not allowed",
          path, Quoted{tensor.name}, tensor.begin, covered);
    check(tensor.begin >= covered,
          "{}: tensor {}: its data begins at byte {} and overlaps tensor {}, which ends at byte "
          "{}",
          path, Quoted{tensor.name}, tensor.begin, Quoted{before}, covered);
    covered = tensor.end;
    before = tensor.name;
  }
  check(covered == data_size,
        "{}: the tensors end at byte {} of the data, but {} trailing bytes follow them", path,
        covered, data_size - covered);
}

// Files that are given instead of a checkpoint, recognised by how they begin.
struct Beginning {
  std::string_view bytes;
  std::string_view kind;
};

constexpr Beginning kBeginnings[] = {
    {"GGUF", "a GGUF file; give it a name that ends with .gguf"},
    {"PK\x03\x04", "a PyTorch or zip archive"},
    {"\x80\x02", "a PyTorch or pickle file"},
    {"\x80\x03", "a PyTorch or pickle file"},
    {"\x80\x04", "a PyTorch or pickle file"},
    {"\x80\x05", "a PyTorch or pickle file"},
    {"\x89PNG", "a PNG picture"},
    {"\xff\xd8\xff", "a JPEG picture"},
    {"\x1f\x8b\x08", "a gzip archive; unpack it"},
    {"\177ELF", "a program or library"},
    {"version https://git-lfs", "a pointer of Git LFS; fetch the file itself"},
    {"<!DOCTYPE", "a web page"},
    {"<!doctype", "a web page"},
    {"<html", "a web page"},
};

bool is_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 0x20 || c == '\t' || c == '\n' || c == '\r';
  });
}

// What the file is, for a sentence: "a text file", "a PyTorch archive"; empty when it may be a
// safetensors file, whole or damaged.
std::string_view kind_if_not_safetensors(std::span<const std::byte> file) {
  constexpr size_t kRead = 512;
  const std::string_view text(reinterpret_cast<const char*>(file.data()),
                              std::min(file.size(), kRead));
  // First, since a length may look like any of the others: 640 begins as a pickle does.
  if (text.size() > kLengthBytes && text[kLengthBytes] == '{') return "";
  for (const Beginning& beginning : kBeginnings) {
    if (text.starts_with(beginning.bytes)) return beginning.kind;
  }
  // The fourth byte of a header's length is 5 at most, which no text has.
  constexpr size_t kTold = 4;
  return text.size() >= kTold && is_text(text) ? "a text file" : "";
}

// The JSON text of the header, after the checks that need nothing but its length.
std::string_view header_text(std::span<const std::byte> file, const std::string& path) {
  const std::string_view kind = kind_if_not_safetensors(file);
  check(kind.empty(), "{}: is not a safetensors file but {}", path, kind);
  check(!file.empty(), "{}: is empty, expected a safetensors file", path);
  check(file.size() >= kLengthBytes,
        "{}: is {} bytes long, but a safetensors file begins with an 8-byte header length; the "
        "file is truncated or of another kind",
        path, file.size());
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = (length << 8) | std::to_integer<uint64_t>(file[i]);
  }
  check(length <= kMaxSafetensorsHeader,
        "{}: is not a safetensors file (it does not begin with a header length); the file is "
        "damaged or of another kind",
        path);
  const uint64_t following = file.size() - kLengthBytes;
  check(length <= following,
        "{}: the header length is {}, but only {} bytes follow it; the file is truncated or of "
        "another kind",
        path, length, following);
  check(length > 0, "{}: the header length is 0, expected a JSON header; the file is damaged",
        path);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  check(text[0] == '{', "{}: the header begins with byte 0x{:02x}, expected '{{'", path,
        static_cast<unsigned char>(text[0]));
  return text;
}

}  // namespace

TensorFileHeader parse_safetensors(std::span<const std::byte> file, const std::string& path) {
  const std::string_view text = header_text(file, path);
  TensorFileHeader header;
  header.data_begin = kLengthBytes + text.size();
  const uint64_t data_size = file.size() - header.data_begin;
  const json root = parse_json(text, path + ": header");
  header.tensors.reserve(root.size());
  for (const auto& [name, entry] : root.items()) {
    if (name == kMetadataKey) {
      header.metadata = parse_metadata(entry, path);
    } else {
      header.tensors.push_back(TensorEntry(path, name, entry).parse(data_size));
    }
  }
  check_cover(header.tensors, data_size, path);
  return header;
}

}  // namespace octet
