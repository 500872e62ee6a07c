// What a device can reach, measured, and how near work comes to it.
#pragma once

#include "backend/backend.h"

namespace octet::measure {

// Per second; 0: unknown.
struct Ceilings {
  double int8 = 0;  // operations of products of INT8 codes
  double bf16 = 0;  // and of BF16
  double copy = 0;  // bytes, read and written, of a large copy within the device's memory
};

// Takes half a gigabyte of a GPU's memory for a moment.
Ceilings measure_ceilings(Backend& backend);

// The share of its time that work would take at the ceilings: its products, each kind at its own,
// or the bytes that it moves, whichever takes longer. 0 where a ceiling is unknown, as that of
// products in F32. May pass 1 where bytes are still in a cache.
double ceiling_share(const OpWork& work, double us, DType dtype, const Ceilings& ceilings);

}  // namespace octet::measure
