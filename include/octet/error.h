// The exception type of the library. Its message is one sentence: what went wrong, what was
// expected, what was found and, if there is one, the remedy. Public functions throw nothing else:
// running out of memory, a thread that cannot start and an exception from one of your callbacks are
// Errors, too.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "octet/export.h"
#include "octet/sentence.h"

namespace octet {

class OCTET_API Error : public std::runtime_error {
 public:
  // Control characters and bytes that are not UTF-8, of users' data, become escapes.
  explicit Error(const Sentence& sentence);
  const Sentence& sentence() const { return *sentence_; }  // what() in segments

 private:
  explicit Error(std::shared_ptr<const Sentence> sentence);

  std::shared_ptr<const Sentence> sentence_;  // shared, so that copying an Error cannot fail
};

// Work was stopped on request.
class OCTET_API Cancelled : public Error {
 public:
  using Error::Error;
};

// Too little memory, the host's or a device's: a caller may try something smaller.
class OCTET_API OutOfMemory : public Error {
 public:
  using Error::Error;
};

// The request is itself wrong, whatever the files contain: a size, a preset, a caption. Programs
// report it as wrong usage.
class OCTET_API InvalidRequest : public Error {
 public:
  InvalidRequest(std::string field, Sentence sentence)
      : Error(std::move(sentence)), field_(std::move(field)) {}
  const std::string& field() const { return field_; }  // the wrong one: "size"

 private:
  std::string field_;
};

}  // namespace octet
