#include "formats/safetensors_writer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/safetensors.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr int64_t kDataAlignment = 64;

std::vector<TensorInfo> lay_out(const std::string& path,
                                const std::vector<TensorDeclaration>& tensors) {
  std::vector<TensorInfo> layout;
  std::set<std::string_view> names;
  for (const TensorDeclaration& tensor : tensors) {
    if (!is_utf8(tensor.name)) {
      fail("{}: the tensor name {} is not UTF-8", path, in_quotes(tensor.name));
    }
    if (tensor.name == kMetadataKey) {
      fail("{}: a tensor cannot be named {}, which the format reserves", path, kMetadataKey);
    }
    if (!names.insert(tensor.name).second) {
      fail("{}: tensor {}: the name was given twice", path, in_quotes(tensor.name));
    }
    TensorInfo& info = layout.emplace_back();
    info.name = tensor.name;
    info.dtype = tensor.dtype;
    info.shape = tensor.shape;
    info.end = storage_bytes(path, tensor.name, tensor.dtype, tensor.shape);
  }
  std::stable_sort(layout.begin(), layout.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return alignment_of(a.dtype) > alignment_of(b.dtype);
  });
  uint64_t offset = 0;
  for (TensorInfo& info : layout) {
    const auto end = checked_add(offset, info.end);
    if (!end) fail("{}: tensor {}: the file size overflows 64 bits", path, in_quotes(info.name));
    info.begin = offset;
    info.end = *end;
    offset = *end;
  }
  return layout;
}

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

// Written by hand rather than as one JSON value, to keep the header in the order of the data.
std::string header_of(const std::string& path, const std::vector<TensorInfo>& layout,
                      const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += json_string(std::string(kMetadataKey)) + ":{";
    for (const auto& [key, value] : metadata) {
      if (!is_utf8(key) || !is_utf8(value)) {
        fail("{}: the metadata entry {} is not UTF-8", path, in_quotes(key));
      }
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
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::string path,
                                     const std::vector<TensorDeclaration>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), layout_(lay_out(path_, tensors)) {
  const std::string header = header_of(path_, layout_, metadata);
  file_ = std::make_unique<AtomicFile>(path_);
  std::byte length[8];
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  file_->write(length);
  file_->write(std::as_bytes(std::span(header)));
  skip_complete();
}

void SafetensorsWriter::write(const std::string& name, std::span<const std::byte> piece) {
  try {
    write_piece(name, piece);
  } catch (...) {
    file_.reset();
    throw;
  }
}

void SafetensorsWriter::write_piece(const std::string& name, std::span<const std::byte> piece) {
  check(file_ != nullptr, "{}: tensor {}: the file was completed, or given up after an error",
        path_, in_quotes(name));
  // Callers loop over layout(), empty tensors included, and those are complete from the start.
  if (piece.empty()) return;
  if (current_ == layout_.size()) {
    fail("{}: tensor {}: {} bytes too many, because all tensors are complete", path_,
         in_quotes(name), piece.size());
  }
  const TensorInfo& due = layout_[current_];
  if (name != due.name) {
    fail("{}: tensor {}: was written out of order; {} bytes of tensor {} are due", path_,
         in_quotes(name), due.end - data_written_, in_quotes(due.name));
  }
  if (piece.size() > due.end - data_written_) {
    fail("{}: tensor {}: {} bytes were written, expected {}", path_, in_quotes(name),
         data_written_ - due.begin + piece.size(), due.bytes());
  }
  file_->write(piece);
  data_written_ += piece.size();
  skip_complete();
}

void SafetensorsWriter::skip_complete() {
  while (current_ < layout_.size() && layout_[current_].end == data_written_) ++current_;
}

void SafetensorsWriter::commit() {
  check(file_ != nullptr, "{}: the file was completed, or given up after an error", path_);
  if (current_ < layout_.size()) {
    const TensorInfo& due = layout_[current_];
    fail("{}: tensor {}: is incomplete, {} of {} bytes were written", path_, in_quotes(due.name),
         data_written_ - due.begin, due.bytes());
  }
  file_->commit();
  file_.reset();
}

}  // namespace octet
