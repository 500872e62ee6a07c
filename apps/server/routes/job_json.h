// Jobs as JSON: the job object and its parts, as clients of the native routes see them.
#pragma once

#include <string>

#include "server/routes/json.h"
#include "server/service/service.h"

namespace octet::server {

Json job_json(const Service& service, const Job& job);
Json picture_json(const Job& job, const FinishedPicture& picture);
Json progress_json(const RenderProgress& progress);
// What ran, without the names of files.
Json report_json(const JobSpec& spec, const RenderReport& report);

std::string picture_path(const Job& job, int index);  // "/v1/jobs/ID/pictures/0"
std::string size_text(PictureSize size);              // "1024x1024"
const char* media_type(PictureFormat format);         // "image/png"
Json seconds_or_null(double seconds);                 // null: negative, unknown

}  // namespace octet::server
