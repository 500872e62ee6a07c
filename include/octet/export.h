// What a shared library of Octet shows: everything else in it is hidden.
#pragma once

#define OCTET_API __attribute__((visibility("default")))
