// How many bytes an op has to move: its matrices, each once. Vectors of a row's length are next to
// nothing compared with them, and are left out.
#pragma once

#include <initializer_list>

#include "backend/observer.h"
#include "backend/ops.h"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

namespace octet {

// A matrix of an op; none where it has no data.
class Moved {
 public:
  Moved(const ConstTensorView& matrix) : bytes_(size(matrix)) {}
  Moved(const TensorView& matrix) : bytes_(size(matrix)) {}
  Moved(const QTensor& rows) : bytes_(size(rows.values) + size(rows.scales)) {}
  Moved(const QuantizedHeads& heads) : bytes_(size(heads.codes) + size(heads.scales)) {}

  double bytes() const { return bytes_; }

 private:
  static double size(const ConstTensorView& view) {
    return view.data == nullptr ? 0 : static_cast<double>(bytes_of(view.dtype, view.shape));
  }

  double bytes_;
};

// Work without a product. A matrix that is changed in place is read and written: it counts twice.
inline OpWork moving(std::initializer_list<Moved> matrices) {
  OpWork work;
  for (const Moved& matrix : matrices) work.bytes += matrix.bytes();
  return work;
}

inline OpWork multiplying(double operations, std::initializer_list<Moved> matrices) {
  OpWork work = moving(matrices);
  work.operations = operations;
  return work;
}

}  // namespace octet
