// CHECK() for programs in plain C, where there is no GoogleTest: failures are printed and counted,
// and main() ends with `return failures != 0`, or with `return SKIPPED("why")`.
#ifndef OCTET_TESTS_C_CHECK_H
#define OCTET_TESTS_C_CHECK_H

#include <stdio.h>
#include <string.h>

#include "octet/octet.h"

static int failures = 0;

// As GoogleTest says it; the status is the one that CTest takes for a skipped test.
#define SKIPPED(why) (printf("%s:%d: Skipped\n%s\n", __FILE__, __LINE__, why), 77)

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      ++failures;                                                                              \
      printf("%s:%d: %s is false; the last error is \"%s\"\n", __FILE__, __LINE__, #condition, \
             octet_last_error());                                                              \
    }                                                                                          \
  } while (0)

// A call that fails with this status, about this field, with a sentence that has these words.
#define CHECK_FAILS(call, status, field, words)          \
  do {                                                   \
    const octet_status status_ = (call);                 \
    CHECK(status_ == (status));                          \
    CHECK(strcmp(octet_last_error_field(), field) == 0); \
    CHECK(strstr(octet_last_error(), words) != NULL);    \
  } while (0)

#endif
