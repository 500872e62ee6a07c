// OutOfMemory, and the functions that throw Errors.
#pragma once

#include "base/error.h"
#include "octet/out_of_memory.h"
