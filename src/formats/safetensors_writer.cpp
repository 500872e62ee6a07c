#include "formats/safetensors_writer.h"

#include <utility>

#include "base/error.h"
#include "formats/text.h"

namespace octet {

SafetensorsWriter::SafetensorsWriter(std::string path,
                                     const std::vector<TensorDeclaration>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), layout_(lay_out_tensors(path_, tensors)) {
  const std::string header = header_bytes(path_, layout_, metadata);
  file_ = std::make_unique<AtomicFile>(path_);
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
  check(current_ < layout_.size(),
        "{}: tensor {}: {} bytes too many, because all tensors are complete", path_, Quoted{name},
        piece.size());
  const TensorInfo& due = layout_[current_];
  check(name == due.name, "{}: tensor {}: was written out of order; {} bytes of tensor {} are due",
        path_, Quoted{name}, due.end - data_written_, Quoted{due.name});
  check(piece.size() <= due.end - data_written_,
        "{}: tensor {}: {} bytes were written, expected {}", path_, Quoted{name},
        data_written_ - due.begin + piece.size(), due.bytes());
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
