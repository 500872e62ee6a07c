// record_heads MODEL CAPTIONS STEPS OUT
//
// q, k and v of every attention while a small model paints some captions on the CPU: after norm and
// rotary, F32, for int8_error.py. OUT gets <network>.<layer>.<caption>.<step>.<q, k or v> of every
// third step, F32 [heads, rows, head size]. CAPTIONS: paths with commas between them.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "cpu/cpu_backend.h"
#include "formats/safetensors_writer.h"
#include "models/small_model.h"

namespace octet {
namespace {

struct Heads {
  FileShape shape;
  std::vector<float> values;
};

Heads heads_of(const ConstTensorView& x, int64_t heads) {
  const int64_t rows = x.shape[0], head_dim = x.shape[1] / heads;
  Heads made{{heads, rows, head_dim}, {}};
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < rows; ++i) {
      const float* row = x.as<float>() + i * x.row_stride() + head * head_dim;
      made.values.insert(made.values.end(), row, row + head_dim);
    }
  }
  return made;
}

void run(int argc, char** argv) {
  check(argc == 5, "usage: record_heads MODEL CAPTIONS STEPS OUT");
  const auto backend = make_cpu_backend();
  test::SmallModel model(*backend, argv[1]);
  std::map<std::string, Heads> seen;
  std::istringstream captions(argv[2]);
  int number = 0;
  for (std::string caption; std::getline(captions, caption, ','); ++number) {
    model.paint(caption, std::stoi(argv[3]), [&](const test::SmallModel::Pass& pass) {
      if (pass.step % 3 != 0) return;
      int layer = 0;
      const test::AttentionWatch watch(*backend, [&](const AttentionArgs& args) {
        const std::string at =
            fmt::format("{}.{}.{}.{}.", pass.network, layer++, number, pass.step);
        seen[at + "q"] = heads_of(args.q, args.heads);
        seen[at + "k"] = heads_of(args.k, args.kv_heads);
        seen[at + "v"] = heads_of(args.v, args.kv_heads);
      });
      pass.run(nn::AttentionScores::floating);
    });
  }
  std::vector<TensorDeclaration> tensors;
  for (const auto& [name, heads] : seen) tensors.push_back({name, DType::f32, heads.shape});
  SafetensorsWriter writer(argv[4], tensors);
  for (const TensorInfo& tensor : writer.layout()) {
    writer.write(tensor.name, std::as_bytes(std::span(seen.at(tensor.name).values)));
  }
  writer.commit();
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  try {
    octet::run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "record_heads: {}\n", error.what());
    return 1;
  }
}
