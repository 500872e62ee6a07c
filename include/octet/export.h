// Marks what a shared library exports; everything else in it is hidden.
#pragma once

#define OCTET_API __attribute__((visibility("default")))
