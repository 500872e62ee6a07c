// Writes a sample with our safetensors writer, for tests that read it with other libraries:
// write_sample FILE. Byte i of every tensor is (i * 7 + length of the tensor's name) mod 256.
#include <cstdint>
#include <exception>
#include <iostream>
#include <vector>

#include "formats/safetensors_writer.h"

namespace {

void write_sample(const std::string& path) {
  std::vector<octet::TensorDeclaration> tensors = {
      {"empty", octet::DType::f32, {0, 3}},
      {"scalar", octet::DType::f32, {}},
      {"größe", octet::DType::i16, {7}},
      {"with \"quotes\"\nand a line feed", octet::DType::u8, {3}},
  };
  for (const octet::DType dtype :
       {octet::DType::i8, octet::DType::u8, octet::DType::bf16, octet::DType::f16,
        octet::DType::f8_e4m3, octet::DType::f8_e5m2, octet::DType::f32, octet::DType::f64,
        octet::DType::i32, octet::DType::i64, octet::DType::u16, octet::DType::u32,
        octet::DType::u64}) {
    tensors.push_back({"odd." + std::string(octet::name_of(dtype)), dtype, {5, 3}});
  }
  octet::SafetensorsWriter writer(path, tensors, {{"format", "pt"}, {"note", "é\n\"q\""}});
  for (const octet::TensorInfo& info : writer.layout()) {
    std::vector<std::byte> bytes(info.bytes());
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(i * 7 + info.name.size());
    }
    writer.write(info.name, bytes);
  }
  writer.commit();
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::cerr << "usage: write_sample FILE\n";
    return 2;
  }
  try {
    write_sample(arguments[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
