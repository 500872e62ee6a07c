// Convolution as a matrix product of the pixels with their neighbours side by side.
#pragma once

#include "backend/ops.h"
#include "cuda/device.h"
#include "cuda/matmul/matmul.h"

namespace octet::cuda {

// Backend::conv2d(); the device is active.
void conv2d(Device& device, Matmul& matmul, const ConvArgs& args);

}  // namespace octet::cuda
