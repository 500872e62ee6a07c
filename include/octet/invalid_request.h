// The Error of a request that is wrong by itself, whatever the files hold: a size, a preset, a
// guidance. Programs report it as wrong usage.
//
// The sentences of all Errors write the fields of requests in backquotes, `guidance`: whoever shows
// them may put their own word there, a flag or the name of an argument.
#pragma once

#include <string>
#include <utility>

#include "octet/error.h"

namespace octet {

class OCTET_API InvalidRequest : public Error {
 public:
  InvalidRequest(std::string field, const std::string& sentence)
      : Error(sentence), field_(std::move(field)) {}
  const std::string& field() const { return field_; }  // that is wrong: "size"

 private:
  std::string field_;
};

}  // namespace octet
