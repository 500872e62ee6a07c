#include "formats/tensor_file.h"

#include "base/error.h"
#include "formats/text.h"

namespace octet {

TensorFile::TensorFile(const std::string& path, Parse& parse)
    : file_(path), header_(file_.read([&](auto bytes) { return parse(bytes, path); })) {
  index_.reserve(header_.tensors.size());
  for (size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

const TensorInfo* TensorFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

const TensorInfo& TensorFile::info(const std::string& name) const {
  const TensorInfo* found = find(name);
  if (found == nullptr) fail("{}: has no tensor {}", path(), in_quotes(name));
  return *found;
}

std::span<const std::byte> TensorFile::bytes(const std::string& name) const {
  const TensorInfo& tensor = info(name);
  return file_.bytes().subspan(header_.data_begin + tensor.begin, tensor.bytes());
}

ConstTensorView TensorFile::view(const std::string& name) const {
  const TensorInfo& tensor = info(name);
  if (!tensor.packing.empty()) {
    fail("{}: tensor {}: is packed in blocks of {}, not in plain elements", path(), in_quotes(name),
         tensor.packing);
  }
  if (tensor.shape.size() > static_cast<size_t>(Shape::kMaxRank)) {
    fail("{}: tensor {}: its rank is {}, above the supported {}", path(), in_quotes(name),
         tensor.shape.size(), Shape::kMaxRank);
  }
  const uint64_t offset = header_.data_begin + tensor.begin;
  const uint64_t alignment = alignment_of(tensor.dtype);
  if (offset % alignment != 0) {
    fail(
        "{}: tensor {}: its {} data begins at file byte {}, which is not aligned to {} bytes; "
        "save the file again with a current safetensors library",
        path(), in_quotes(name), name_of(tensor.dtype), offset, alignment);
  }
  Shape shape;
  for (const int64_t extent : tensor.shape) shape.push_back(extent);
  return ConstTensorView(bytes(name).data(), tensor.dtype, shape);
}

}  // namespace octet
