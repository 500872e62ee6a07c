// OutOfMemory, and the functions that throw Errors.
#pragma once

#include "base/error.h"
#include "octet/error.h"
