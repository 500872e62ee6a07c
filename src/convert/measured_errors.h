// Measured errors, kept next to the output until it is complete: measuring takes longer
// than writing.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/stopwatch.h"
#include "octet/quantize.h"

namespace octet::convert {

class MeasuredErrors {
 public:
  // Of the output at `path`; nothing is kept when that is empty. Those of another key are dropped,
  // as are files that make no sense: they are only there to save time.
  MeasuredErrors(const std::string& path, const std::string& key);
  ~MeasuredErrors();  // keeps what was added
  MeasuredErrors(const MeasuredErrors&) = delete;
  MeasuredErrors& operator=(const MeasuredErrors&) = delete;

  const LinearError* find(const std::string& name) const;
  // Written to the disk now and then: small linears are measured faster than it works.
  void add(const std::string& name, const LinearError& error);
  static void forget(const std::string& path);

 private:
  void read();
  void try_to_write();
  void write();

  std::string file_;
  std::string key_;
  std::map<std::string, LinearError> errors_;
  bool written_ = true;
  Stopwatch since_written_;
};

nlohmann::ordered_json to_json(const LinearError& error);

}  // namespace octet::convert
