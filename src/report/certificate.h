// What the files of octet/certify.h share.
#pragma once

#include <string>

#include "octet/tools/certify.h"

namespace octet::report {

// "fox, seed 3"; with given noise only the caption's name.
std::string name_of(const ComparedImage& image, const CompareReport& report);

// The entry `json` of a certificate that is otherwise complete, and its digest.
void write_certificate_json(Certificate& certificate);

}  // namespace octet::report
