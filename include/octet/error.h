// The exception type of the library. Its message is one sentence: what went wrong, what was
// expected, what was found and, if there is one, the remedy. Public functions throw nothing else:
// running out of memory, a thread that cannot start and an exception from one of your callbacks are
// Errors, too.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include "octet/export.h"
#include "octet/sentence.h"

namespace octet {

class OCTET_API Error : public std::runtime_error {
 public:
  explicit Error(Sentence sentence)
      : std::runtime_error(sentence.text()),
        sentence_(std::make_shared<const Sentence>(std::move(sentence))) {}
  const Sentence& sentence() const { return *sentence_; }  // what() in segments

 private:
  std::shared_ptr<const Sentence> sentence_;  // shared, so that copying an Error cannot fail
};

}  // namespace octet
