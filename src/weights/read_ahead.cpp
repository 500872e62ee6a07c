#include "weights/read_ahead.h"

#include "weights/loader.h"

namespace octet::weights {

void ReadAhead::linear(nn::Linear&, const nn::LinearSpec& spec) {
  for (const auto& part : stored_parts(source_, spec)) {
    for (const UsedTensor& tensor : part->tensors()) {
      if (tensor.file != nullptr) tensor.file->read_ahead(tensor.bytes);
    }
  }
}

}  // namespace octet::weights
