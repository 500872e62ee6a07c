#include "formats/file_kind.h"

#include <algorithm>
#include <cstdint>

namespace octet {
namespace {

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
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 0x20 || c == '\t' || c == '\n' || c == '\r';
  });
}

}  // namespace

std::string_view kind_if_not_safetensors(std::span<const std::byte> file) {
  constexpr size_t kRead = 512;
  constexpr size_t kHeader = 8;  // where the header of a safetensors file begins
  const std::string_view text(reinterpret_cast<const char*>(file.data()),
                              std::min(file.size(), kRead));
  // First, since a length may look like any of the others: 640 begins as a pickle does.
  if (text.size() > kHeader && text[kHeader] == '{') return "";
  for (const Beginning& beginning : kBeginnings) {
    if (text.starts_with(beginning.bytes)) return beginning.kind;
  }
  // The fourth byte of a header's length is 5 at most, which no text has.
  constexpr size_t kTold = 4;
  return text.size() >= kTold && is_text(text) ? "a text file" : "";
}

}  // namespace octet
