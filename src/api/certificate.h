// What the files of octet/certify.h share.
#pragma once

#include <string>
#include <vector>

#include "octet/certify.h"

namespace octet::api {

// The files of all networks of a model, or those of a checkpoint that is no model.
std::vector<std::string> network_files(const std::string& model, const std::string& base);

// The entry `json` of a certificate that is otherwise complete, and its digest.
void write_certificate_json(Certificate& certificate);

// SNR after each step as an inline picture; empty where nothing can be drawn.
std::string snr_plot(const CompareReport& report);

}  // namespace octet::api
