// Writes a sample with our safetensors writer, for tests that read it with other libraries:
// write_sample FILE. Byte i of every tensor is (i * 7 + length of the tensor's name) mod 256.
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "formats/safetensors_writer.h"
#include "tools/tools.h"

namespace octet::test {

void write_sample(const Words& words) {
  check(words.size() == 1, "usage: write_sample FILE");
  std::vector<TensorDeclaration> tensors = {
      {"empty", DType::f32, {0, 3}},
      {"scalar", DType::f32, {}},
      {"größe", DType::i16, {7}},
      {"with \"quotes\"\nand a line feed", DType::u8, {3}},
  };
  for (const DType dtype :
       {DType::i8, DType::u8, DType::bf16, DType::f16, DType::f8_e4m3, DType::f8_e5m2, DType::f32,
        DType::f64, DType::i32, DType::i64, DType::u16, DType::u32, DType::u64}) {
    tensors.push_back({"odd." + std::string(name_of(dtype)), dtype, {5, 3}});
  }
  SafetensorsWriter writer(words[0], tensors, {{"format", "pt"}, {"note", "é\n\"q\""}});
  for (const TensorInfo& info : writer.layout()) {
    std::vector<std::byte> bytes(info.bytes());
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(i * 7 + info.name.size());
    }
    writer.write(info.name, bytes);
  }
  writer.commit();
}

}  // namespace octet::test
