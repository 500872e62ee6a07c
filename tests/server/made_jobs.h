// Jobs that nobody renders.
#pragma once

#include <memory>
#include <string>

#include "server/service/job.h"

namespace octet::server {

inline std::shared_ptr<Job> made_job(const std::string& id, const std::string& key = "",
                                     Priority priority = Priority::normal) {
  JobSpec spec;
  spec.key = key;
  spec.priority = priority;
  return std::make_shared<Job>(id, std::move(spec));
}

}  // namespace octet::server
