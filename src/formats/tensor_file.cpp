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
  check(found != nullptr, "{}: has no tensor {}", path(), Quoted{name});
  return *found;
}

std::span<const std::byte> TensorFile::bytes(const std::string& name) const {
  const TensorInfo& tensor = info(name);
  return file_.bytes().subspan(header_.data_begin + tensor.begin, tensor.bytes());
}

}  // namespace octet
