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

// Bytes of a value of each type; 0 where each says its own length.
constexpr uint64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
static_assert(std::size(kValueBytes) == kF64 + 1);

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
  std::span<const std::byte> take(uint64_t bytes, const char* what) {
    check(bytes <= file_.size() - at_,
          "{}: ends at byte {} within its {}; the file is truncated or damaged", path_,
          file_.size(), what);
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
    check(length <= limit, "{}: a {} is {} bytes long, above the limit of {}; the file is damaged",
          path_, what, length, limit);
    check(length <= kMaxAllTexts - kept_,
          "{}: its keys, values and tensor names have more than {} bytes, the limit for all of "
          "them together; the file is damaged",
          path_, kMaxAllTexts);
    kept_ += length;
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  uint64_t count(const char* of_what, uint64_t least_bytes) {
    const auto value = number<uint64_t>("header");
    check(value <= file_.size() / least_bytes,
          "{}: says that it has {} {}, more than its {} bytes can hold; the file is truncated or "
          "damaged",
          path_, value, of_what, file_.size());
    check(value <= kMaxEntries,
          "{}: says that it has {} {}, above the limit of {}; the file is damaged", path_, value,
          of_what, kMaxEntries);
    return value;
  }

  void check_magic() {
    const auto magic = take(4, "header");
    check(std::memcmp(magic.data(), "GGUF", 4) == 0,
          "{}: does not begin with GGUF; the file is of another kind", path_);
    const auto version = number<uint32_t>("header");
    check(version == 0 || (version & 0xffff) != 0,
          "{}: is a big-endian GGUF file, expected a little-endian one", path_);
    check(version == 2 || version == 3, "{}: has the GGUF version {}, expected 2 or 3", path_,
          version);
  }

  // --- key-value pairs ---

  void read_pair() {
    const std::string key = text("key", kMaxName);
    check(is_utf8(key), "{}: the key {} is not UTF-8", path_, Quoted{key});
    const auto type = number<uint32_t>("key-value pairs");
    const uint64_t value_begin = at_;
    const std::string value = value_text(type, key, 0);
    check(header_.metadata.emplace(key, value).second, "{}: the key {} appears twice", path_,
          Quoted{key});
    if (key == "general.alignment") set_alignment(type, value_begin);
    check(key != "split.count" || value == "0" || value == "1",
          "{}: is one of {} parts of a model, expected a whole one; llama-gguf-split --merge joins "
          "them",
          path_, value);
  }

  void set_alignment(uint32_t type, uint64_t begin) {
    uint32_t value = 0;
    if (type == kU32) std::memcpy(&value, file_.data() + begin, sizeof(value));
    if (!std::has_single_bit(value) || value > kMaxAlignment) {
      fail("{}: \"general.alignment\" is {}, expected a power of two up to {} as U32", path_,
           one_line(header_.metadata["general.alignment"]), kMaxAlignment);
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
      default: reject_type(type, key);
    }
  }

  [[noreturn]] void reject_type(uint32_t type, const std::string& key) const {
    fail("{}: the value of {} has the unknown type {}", path_, in_quotes(key), type);
  }

  // The elements are skipped: vocabularies are not needed here.
  std::string array_text(const std::string& key, int depth) {
    constexpr const char* kWhat = "key-value pairs";
    check(depth < kMaxArrayDepth, "{}: the value of {} has arrays nested more than {} deep", path_,
          Quoted{key}, kMaxArrayDepth);
    const auto type = number<uint32_t>(kWhat);
    const auto length = number<uint64_t>(kWhat);
    if (type >= std::size(kValueBytes)) reject_type(type, key);
    const uint64_t size = kValueBytes[type];
    // Texts and arrays begin with a number of 8 bytes.
    check(length <= (file_.size() - at_) / (size > 0 ? size : 8),
          "{}: the value of {} is an array of {}, more than the file can hold", path_, Quoted{key},
          length);
    if (size > 0) {
      take(length * size, kWhat);
      return fmt::format("an array of {}", length);
    }
    check(length <= kMaxWalked - walked_,
          "{}: the value of {} is an array of {}; with those before it, that is above the limit of "
          "{} texts and arrays",
          path_, Quoted{key}, length, kMaxWalked);
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
    const auto* found =
        std::ranges::find_if(kTypes, [&](const GgmlType& type) { return type.id == id; });
    check(found != std::end(kTypes), "{}: tensor {}: its ggml type {} is unknown", path_,
          Quoted{info.name}, id);
    return *found;
  }

  FileShape read_shape(const TensorInfo& info) {
    const auto rank = number<uint32_t>("tensor descriptions");
    check(rank <= kMaxRank, "{}: tensor {}: its rank is {}, above the limit of {}", path_,
          Quoted{info.name}, rank, kMaxRank);
    FileShape shape(rank);
    for (uint32_t i = rank; i-- > 0;) {
      const auto extent = number<uint64_t>("tensor descriptions");
      check(extent <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
            "{}: tensor {}: its extent {} is above 2^63-1", path_, Quoted{info.name}, extent);
      shape[i] = static_cast<int64_t>(extent);
    }
    return shape;
  }

  uint64_t bytes_of(const TensorInfo& info, const GgmlType& type) const {
    const uint64_t innermost = info.shape.empty() ? 1 : static_cast<uint64_t>(info.shape.back());
    if (innermost % type.block != 0) {
      fail("{}: tensor {}: {} {} does not divide into blocks of {}", path_, in_quotes(info.name),
           type.name, to_string(info.shape), type.block);
    }
    auto elements = std::optional<uint64_t>(1);
    for (const int64_t extent : info.shape) {
      elements = checked_mul(elements.value_or(0), static_cast<uint64_t>(extent));
      if (!elements) break;
    }
    const auto bytes = elements ? checked_mul(*elements / type.block, type.bytes) : std::nullopt;
    // An empty tensor's other extents must be representable too, as its elements are counted.
    if (!bytes || *bytes > file_.size()) {
      fail("{}: tensor {}: {} {} does not fit into the file's {} bytes, which may be truncated",
           path_, in_quotes(info.name), type.name, to_string(info.shape), file_.size());
    }
    return *bytes;
  }

  TensorInfo read_description() {
    TensorInfo info;
    info.name = text("tensor name", kMaxName);
    check(is_utf8(info.name), "{}: the tensor name {} is not UTF-8", path_, Quoted{info.name});
    check(names_.insert(info.name).second, "{}: tensor {} appears twice", path_, Quoted{info.name});
    info.shape = read_shape(info);
    const GgmlType& type = type_of(info, number<uint32_t>("tensor descriptions"));
    info.dtype = type.plain.value_or(DType::u8);
    if (!type.plain) info.packing = type.name;
    info.begin = number<uint64_t>("tensor descriptions");
    check(info.begin % alignment_ == 0 && info.begin <= file_.size(),
          "{}: tensor {}: its offset {} is not a multiple of {} within the file", path_,
          Quoted{info.name}, info.begin, alignment_);
    info.end = info.begin + bytes_of(info, type);
    return info;
  }

  uint64_t padded(uint64_t at) const { return (at + alignment_ - 1) / alignment_ * alignment_; }

  void check_cover() {
    std::vector<TensorInfo>& tensors = header_.tensors;
    std::ranges::sort(tensors, [](const TensorInfo& a, const TensorInfo& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    const uint64_t size = file_.size() - header_.data_begin;
    uint64_t covered = 0;
    for (const TensorInfo& tensor : tensors) {
      check(tensor.begin == padded(covered),
            "{}: tensor {}: its data begins at byte {}, expected {} behind the tensor before it",
            path_, Quoted{tensor.name}, tensor.begin, padded(covered));
      check(tensor.end <= size,
            "{}: tensor {}: its data ends at byte {} of {}; the file is truncated", path_,
            Quoted{tensor.name}, tensor.end, size);
      covered = tensor.end;
    }
    check(size <= padded(covered),
          "{}: the tensors end at byte {} of the data, but {} bytes follow them", path_, covered,
          size - covered);
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
