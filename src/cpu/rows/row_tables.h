// One RowOps constant per instruction set, each defined in its own rows_*.cpp.
#pragma once

#include "cpu/rows/row_ops.h"

namespace octet::cpu {

extern const RowOps kRowOpsScalar;
extern const RowOps kRowOpsAvx2;
extern const RowOps kRowOpsAvx512;
extern const RowOps kRowOpsNeon;

}  // namespace octet::cpu
