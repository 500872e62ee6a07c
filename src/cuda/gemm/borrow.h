// A weight owned by somebody else, for the kernels: see Backend::borrow().
#pragma once

#include "cuda/device.h"
#include "tensor/quantized.h"

namespace octet::cuda {

QWeight borrow_weight(Device& device, const PlainWeight& weight);

}  // namespace octet::cuda
