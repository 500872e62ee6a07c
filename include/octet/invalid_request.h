// The Error for a request that is itself wrong, whatever the files contain: a size, a preset, a
// guidance. Programs report it as wrong usage.
#pragma once

#include <string>
#include <utility>

#include "octet/error.h"

namespace octet {

class OCTET_API InvalidRequest : public Error {
 public:
  InvalidRequest(std::string field, Sentence sentence)
      : Error(std::move(sentence)), field_(std::move(field)) {}
  const std::string& field() const { return field_; }  // the wrong one: "size"

 private:
  std::string field_;
};

}  // namespace octet
