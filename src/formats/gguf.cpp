#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "base/checked.h"
#include "base/error.h"
#include "formats/text.h"

namespace octet {
namespace {

// ggml's element types: blocks of some elements of the innermost extent in some bytes.
struct GgmlType {
  uint32_t id;
  const char* name;
  uint32_t block;
  uint32_t bytes;
  std::optional<DType> plain = std::nullopt;  // where ours is the same
};

constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4, DType::f32},
    {1, "F16", 1, 2, DType::f16},
    {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},
    {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1, DType::i8},
    {25, "I16", 1, 2, DType::i16},
    {26, "I32", 1, 4, DType::i32},
    {27, "I64", 1, 8, DType::i64},
    {28, "F64", 1, 8, DType::f64},
    {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2, DType::bf16},
    {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},
    {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
};

enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

constexpr uint64_t kMaxText = 16'000'000;
// Of all keys, values and names together: many texts below their limits still fill the memory.
constexpr uint64_t kMaxAllTexts = 64'000'000;
constexpr uint64_t kMaxName = 65'535;
constexpr uint32_t kMaxRank = 8;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr int kMaxArrayDepth = 4;
// Of key-value pairs, of tensors, and of texts and arrays in all arrays together, which are walked
// one by one: far above what models have (a vocabulary and its merges are below a million), and a
// sparse file can pretend to have billions.
constexpr uint64_t kMaxEntries = 1'000'000, kMaxWalked = 8'000'000;
// The least that a pair (an empty key, a type, one byte) and a description (an empty name, no
// extents, type, offset) take: a count that does not fit into the file is refused at once.
constexpr uint64_t kLeastPair = 8 + 4 + 1, kLeastDescription = 8 + 4 + 4 + 8;

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> file, const std::string& path) : file_(file), path_(path) {}

  TensorFileHeader parse() {
    check_magic();
    const uint64_t tensors = count("tensors", kLeastDescription);
    const uint64_t pairs = count("key-value pairs", kLeastPair);
    for (uint64_t i = 0; i < pairs; ++i) read_pair();
    for (uint64_t i = 0; i < tensors; ++i) header_.tensors.push_back(read_description());
    // Padding up to data that is not there may be missing.
    header_.data_begin = std::min<uint64_t>(padded(at_), file_.size());
    check_cover();
    return std::move(header_);
  }

 private:
  [[noreturn]] void reject(const std::string& fault) const { fail("{}: {}", path_, fault); }

  std::span<const std::byte> take(uint64_t bytes, const char* what) {
    if (bytes > file_.size() - at_) {
      reject(fmt::format("ends at byte {} within its {}; the file is truncated or damaged",
                         file_.size(), what));
    }
    const auto taken = file_.subspan(at_, bytes);
    at_ += bytes;
    return taken;
  }

  template <class T>
  T number(const char* what) {
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string text(const char* what, uint64_t limit) {
    const auto length = number<uint64_t>(what);
    if (length > limit) {
      reject(fmt::format("a {} is {} bytes long, above the limit of {}; the file is damaged", what,
                         length, limit));
    }
    if (length > kMaxAllTexts - kept_) {
      reject(
          fmt::format("its keys, values and tensor names have more than {} bytes, the limit for "
                      "all of them together; the file is damaged",
                      kMaxAllTexts));
    }
    kept_ += length;
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  uint64_t count(const char* of_what, uint64_t least_bytes) {
    const auto value = number<uint64_t>("header");
    if (value > file_.size() / least_bytes) {
      reject(
          fmt::format("says that it has {} {}, more than its {} bytes can hold; the file is "
                      "truncated or damaged",
                      value, of_what, file_.size()));
    }
    if (value > kMaxEntries) {
      reject(fmt::format("says that it has {} {}, above the limit of {}; the file is damaged",
                         value, of_what, kMaxEntries));
    }
    return value;
  }

  void check_magic() {
    const auto magic = take(4, "header");
    if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
      reject("does not begin with GGUF; the file is of another kind");
    }
    const auto version = number<uint32_t>("header");
    if (version != 0 && (version & 0xffff) == 0) {
      reject("is a big-endian GGUF file, expected a little-endian one");
    }
    if (version != 2 && version != 3) {
      reject(fmt::format("has the GGUF version {}, expected 2 or 3", version));
    }
  }

  // --- key-value pairs ---

  void read_pair() {
    const std::string key = text("key", kMaxName);
    if (!is_utf8(key)) reject(fmt::format("the key {} is not UTF-8", in_quotes(key)));
    const auto type = number<uint32_t>("key-value pairs");
    const uint64_t value_begin = at_;
    const std::string value = value_text(type, key, 0);
    if (!header_.metadata.emplace(key, value).second) {
      reject(fmt::format("the key {} appears twice", in_quotes(key)));
    }
    if (key == "general.alignment") set_alignment(type, value_begin);
    if (key == "split.count" && value != "0" && value != "1") {
      reject(
          fmt::format("is one of {} parts of a model, expected a whole one; llama-gguf-split "
                      "--merge joins them",
                      value));
    }
  }

  void set_alignment(uint32_t type, uint64_t begin) {
    uint32_t value = 0;
    if (type == kU32) std::memcpy(&value, file_.data() + begin, sizeof(value));
    if (!std::has_single_bit(value) || value > kMaxAlignment) {
      reject(fmt::format("\"general.alignment\" is {}, expected a power of two up to {} as U32",
                         one_line(header_.metadata["general.alignment"]), kMaxAlignment));
    }
    alignment_ = value;
  }

  std::string value_text(uint32_t type, const std::string& key, int depth) {
    constexpr const char* kWhat = "key-value pairs";
    switch (type) {
      case kU8: return fmt::to_string(number<uint8_t>(kWhat));
      case kI8: return fmt::to_string(number<int8_t>(kWhat));
      case kU16: return fmt::to_string(number<uint16_t>(kWhat));
      case kI16: return fmt::to_string(number<int16_t>(kWhat));
      case kU32: return fmt::to_string(number<uint32_t>(kWhat));
      case kI32: return fmt::to_string(number<int32_t>(kWhat));
      case kF32: return fmt::to_string(number<float>(kWhat));
      case kBool: return number<uint8_t>(kWhat) != 0 ? "true" : "false";
      case kU64: return fmt::to_string(number<uint64_t>(kWhat));
      case kI64: return fmt::to_string(number<int64_t>(kWhat));
      case kF64: return fmt::to_string(number<double>(kWhat));
      case kString: {
        std::string value = text(kWhat, kMaxText);
        return is_utf8(value) ? value : in_quotes(value);
      }
      case kArray: return array_text(key, depth);
      default: reject(fmt::format("the value of {} has the unknown type {}", in_quotes(key), type));
    }
  }

  // Bytes of a value in an array; nothing where each says its own length.
  std::optional<uint64_t> size_in_array(uint32_t type, const std::string& key) const {
    switch (type) {
      case kU8:
      case kI8:
      case kBool: return 1;
      case kU16:
      case kI16: return 2;
      case kU32:
      case kI32:
      case kF32: return 4;
      case kU64:
      case kI64:
      case kF64: return 8;
      case kString:
      case kArray: return std::nullopt;
      default: reject(fmt::format("the value of {} has the unknown type {}", in_quotes(key), type));
    }
  }

  // The elements are passed over: vocabularies are of no use here.
  std::string array_text(const std::string& key, int depth) {
    constexpr const char* kWhat = "key-value pairs";
    if (depth == kMaxArrayDepth) {
      reject(fmt::format("the value of {} has arrays nested more than {} deep", in_quotes(key),
                         kMaxArrayDepth));
    }
    const auto type = number<uint32_t>(kWhat);
    const auto length = number<uint64_t>(kWhat);
    const std::optional<uint64_t> size = size_in_array(type, key);
    // Texts and arrays begin with a number of 8 bytes.
    if (length > (file_.size() - at_) / size.value_or(8)) {
      reject(fmt::format("the value of {} is an array of {}, more than the file can hold",
                         in_quotes(key), length));
    }
    if (size) {
      take(length * *size, kWhat);
      return fmt::format("an array of {}", length);
    }
    if (length > kMaxWalked - walked_) {
      reject(
          fmt::format("the value of {} is an array of {}; with those before it, that is above "
                      "the limit of {} texts and arrays",
                      in_quotes(key), length, kMaxWalked));
    }
    walked_ += length;
    for (uint64_t i = 0; i < length; ++i) {
      if (type == kArray) {
        array_text(key, depth + 1);
      } else {
        take(number<uint64_t>(kWhat), kWhat);
      }
    }
    return fmt::format("an array of {}", length);
  }

  // --- tensors ---

  const GgmlType& type_of(const TensorInfo& info, uint32_t id) const {
    const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [&](const GgmlType& type) { return type.id == id; });
    if (found == std::end(kTypes)) {
      reject(fmt::format("tensor {}: its ggml type {} is unknown", in_quotes(info.name), id));
    }
    return *found;
  }

  FileShape read_shape(const TensorInfo& info) {
    const auto rank = number<uint32_t>("tensor descriptions");
    if (rank > kMaxRank) {
      reject(fmt::format("tensor {}: its rank is {}, above the limit of {}", in_quotes(info.name),
                         rank, kMaxRank));
    }
    FileShape shape(rank);
    for (uint32_t i = rank; i-- > 0;) {
      const auto extent = number<uint64_t>("tensor descriptions");
      if (extent > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        reject(
            fmt::format("tensor {}: its extent {} is above 2^63-1", in_quotes(info.name), extent));
      }
      shape[i] = static_cast<int64_t>(extent);
    }
    return shape;
  }

  uint64_t bytes_of(const TensorInfo& info, const GgmlType& type) const {
    const uint64_t innermost = info.shape.empty() ? 1 : static_cast<uint64_t>(info.shape.back());
    if (innermost % type.block != 0) {
      reject(fmt::format("tensor {}: {} {} does not divide into blocks of {}", in_quotes(info.name),
                         type.name, to_string(info.shape), type.block));
    }
    auto elements = std::optional<uint64_t>(1);
    for (const int64_t extent : info.shape) {
      elements = checked_mul(elements.value_or(0), static_cast<uint64_t>(extent));
      if (!elements) break;
    }
    const auto bytes = elements ? checked_mul(*elements / type.block, type.bytes) : std::nullopt;
    // An empty tensor's other extents must be representable too, as its elements are counted.
    if (!bytes || *bytes > file_.size()) {
      reject(
          fmt::format("tensor {}: {} {} does not fit into the file's {} bytes, which may be "
                      "truncated",
                      in_quotes(info.name), type.name, to_string(info.shape), file_.size()));
    }
    return *bytes;
  }

  TensorInfo read_description() {
    TensorInfo info;
    info.name = text("tensor name", kMaxName);
    if (!is_utf8(info.name)) {
      reject(fmt::format("the tensor name {} is not UTF-8", in_quotes(info.name)));
    }
    if (!names_.insert(info.name).second) {
      reject(fmt::format("tensor {} appears twice", in_quotes(info.name)));
    }
    info.shape = read_shape(info);
    const GgmlType& type = type_of(info, number<uint32_t>("tensor descriptions"));
    info.dtype = type.plain.value_or(DType::u8);
    if (!type.plain) info.packing = type.name;
    info.begin = number<uint64_t>("tensor descriptions");
    if (info.begin % alignment_ != 0 || info.begin > file_.size()) {
      reject(fmt::format("tensor {}: its offset {} is not a multiple of {} within the file",
                         in_quotes(info.name), info.begin, alignment_));
    }
    info.end = info.begin + bytes_of(info, type);
    return info;
  }

  uint64_t padded(uint64_t at) const { return (at + alignment_ - 1) / alignment_ * alignment_; }

  void check_cover() {
    std::vector<TensorInfo>& tensors = header_.tensors;
    std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    const uint64_t size = file_.size() - header_.data_begin;
    uint64_t covered = 0;
    for (const TensorInfo& tensor : tensors) {
      if (tensor.begin != padded(covered)) {
        reject(
            fmt::format("tensor {}: its data begins at byte {}, expected {} behind the tensor "
                        "before it",
                        in_quotes(tensor.name), tensor.begin, padded(covered)));
      }
      if (tensor.end > size) {
        reject(fmt::format("tensor {}: its data ends at byte {} of {}; the file is truncated",
                           in_quotes(tensor.name), tensor.end, size));
      }
      covered = tensor.end;
    }
    if (size > padded(covered)) {
      reject(fmt::format("the tensors end at byte {} of the data, but {} bytes follow them",
                         covered, size - covered));
    }
  }

  std::span<const std::byte> file_;
  const std::string& path_;
  uint64_t at_ = 0;
  uint64_t walked_ = 0;  // texts and arrays in arrays
  uint64_t kept_ = 0;    // bytes of texts
  uint64_t alignment_ = kDefaultAlignment;
  std::set<std::string> names_;
  TensorFileHeader header_;
};

}  // namespace

TensorFileHeader parse_gguf(std::span<const std::byte> file, const std::string& path) {
  return GgufParser(file, path).parse();
}

}  // namespace octet
