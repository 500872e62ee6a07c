#include "weights/dialect.h"

#include "base/error.h"
#include "formats/text.h"

namespace octet::weights {

std::span<const Dialect> dialects() {
  // The most specific first: plain weights are the rest.
  static const Dialect kDialects[] = {kComfyDialect,
                                      kNf4Dialect,
                                      kTransformerLabDialect,
                                      kGgufDialect,
                                      kCompressedTensorsDialect,
                                      kScaledFp8Dialect,
                                      kPlainDialect};
  return kDialects;
}

const Dialect* dialect_of(const Checkpoint& checkpoint, const std::string& module) {
  for (const Dialect& dialect : dialects()) {
    if (dialect.stores(checkpoint, module)) return &dialect;
  }
  return nullptr;
}

std::unique_ptr<StoredWeight> open_weight(const Checkpoint& checkpoint, const std::string& module,
                                          int64_t rows, int64_t k) {
  const Dialect* dialect = dialect_of(checkpoint, module);
  check(dialect != nullptr,
        "{}: tensor {} is missing; the checkpoint is incomplete or of another model",
        checkpoint.path(), Quoted{module + ".weight"});
  try {
    return dialect->open(checkpoint, module, rows, k);
  } catch (const Error&) {
    checkpoint.check_intact();  // else the sentence would be about zeros that the file never held
    throw;
  }
}

}  // namespace octet::weights
