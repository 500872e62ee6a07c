// A request that was checked against a loaded model: Engine::check() returns it, and
// Engine::render() takes nothing else. It is cheap to copy and never changes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "octet/export.h"
#include "octet/picture.h"

namespace octet {

namespace engine {
struct Job;
}  // namespace engine

class OCTET_API Job {
 public:
  Job() = default;  // empty: engines refuse it, and the functions below must not be called
  explicit Job(std::shared_ptr<const engine::Job> checked) : checked_(std::move(checked)) {}
  explicit operator bool() const { return checked_ != nullptr; }

  const PictureRequest& request() const;
  PictureSize size() const;     // of the pictures, even if the request names none
  LatentShape latents() const;  // of one picture
  int steps() const;
  int text_tokens() const;                           // of the caption
  const std::vector<std::string>& branches() const;  // names of those that run in any step
  const std::vector<Sentence>& warnings() const;     // about the request

  const std::shared_ptr<const engine::Job>& checked() const { return checked_; }  // the engine's

 private:
  std::shared_ptr<const engine::Job> checked_;
};

}  // namespace octet
