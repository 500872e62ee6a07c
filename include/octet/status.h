// What the whole C interface shares: its version, errors, and how its structs grow. Included by
// octet/octet.h.
#ifndef OCTET_STATUS_H
#define OCTET_STATUS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "octet/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Increases when a function or a field is added. Existing ones keep their meaning: a program runs
// with every library whose octet_abi_version() is at least this.
#define OCTET_ABI_VERSION 6
OCTET_API int32_t octet_abi_version(void);
OCTET_API const char* octet_version(void);  // "0.2.0"
OCTET_API const char* octet_commit(void);   // of the build

// --- errors ---

typedef int32_t octet_status;
enum {
  OCTET_OK = 0,
  OCTET_ERROR = 1,            // any other
  OCTET_INVALID_REQUEST = 2,  // an argument or a field is itself wrong
  OCTET_CANCELLED = 3,
  OCTET_OUT_OF_MEMORY = 4  // the device's, or the host's
};

// About this thread's last call that returned a status or a text: what went wrong, and which field
// or argument was wrong, if known. Otherwise "". Valid until the next such call.
OCTET_API const char* octet_last_error(void);
OCTET_API const char* octet_last_error_field(void);

typedef int32_t octet_dtype;
enum { OCTET_F32 = 1, OCTET_BF16 = 2, OCTET_F16 = 3, OCTET_I8 = 4, OCTET_I32 = 5 };

// Which GEMM kernels of a GPU are chosen by measuring: those missing from the plan file, none, all.
enum { OCTET_TUNE_MISSING = 0, OCTET_TUNE_OFF = 1, OCTET_TUNE_ALL = 2 };

// octet_..._init() returns a struct with its defaults. It is inline because the library may know a
// larger struct than the program does.
#define OCTET_DEFINE_INIT(type)          \
  static inline type type##_init(void) { \
    type made;                           \
    memset(&made, 0, sizeof made);       \
    made.struct_size = sizeof made;      \
    return made;                         \
  }

#ifdef __cplusplus
}
#endif

#endif
