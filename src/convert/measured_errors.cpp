#include "convert/measured_errors.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "formats/json.h"
#include "formats/resume_journal.h"

namespace octet::convert {
namespace {

std::string file_of(const std::string& path) { return path.empty() ? "" : path + ".part.errors"; }

std::vector<ErrorPlace> places(const nlohmann::json& list, const char* key) {
  std::vector<ErrorPlace> made;
  for (const auto& entry : list) made.push_back({entry.at("index"), entry.at(key)});
  return made;
}

nlohmann::ordered_json list_of(const std::vector<ErrorPlace>& places, const char* key) {
  nlohmann::ordered_json list = nlohmann::json::array();
  for (const auto& place : places) list.push_back({{"index", place.index}, {key, place.value}});
  return list;
}

LinearError from_json(const nlohmann::json& json) {
  LinearError error;
  error.module = json.at("module");
  error.n = json.at("n");
  error.k = json.at("k");
  error.rowwise = json.at("rowwise");
  error.smoothquant = json.at("smoothquant");
  error.convrot = json.at("convrot");
  error.unquantized = json.at("protected");
  error.worst_rows = places(json.at("worst_rows"), "share");
  error.worst_columns = places(json.at("worst_columns"), "reach");
  return error;
}

}  // namespace

nlohmann::ordered_json to_json(const LinearError& error) {
  return {{"module", error.module},
          {"n", error.n},
          {"k", error.k},
          {"rowwise", error.rowwise},
          {"smoothquant", error.smoothquant},
          {"convrot", error.convrot},
          {"protected", error.unquantized},
          {"worst_rows", list_of(error.worst_rows, "share")},
          {"worst_columns", list_of(error.worst_columns, "reach")}};
}

MeasuredErrors::MeasuredErrors(const std::string& path, const std::string& key)
    : file_(file_of(path)), key_(fmt::format("{:016x}", hash_text(key))) {
  try {
    read();
  } catch (const std::exception&) {
    errors_.clear();
  }
}

void MeasuredErrors::read() {
  if (file_.empty() || !is_file_there(file_)) return;
  const nlohmann::json root = read_json_file(file_);
  if (root.at("key") != key_) return;
  for (const auto& [name, error] : root.at("errors").items()) errors_[name] = from_json(error);
}

const LinearError* MeasuredErrors::find(const std::string& name) const {
  const auto found = errors_.find(name);
  return found == errors_.end() ? nullptr : &found->second;
}

void MeasuredErrors::add(const std::string& name, const LinearError& error) {
  errors_[name] = error;
  written_ = false;
  constexpr double kEverySeconds = 1;
  if (since_written_.microseconds() * 1e-6 >= kEverySeconds) try_to_write();
}

MeasuredErrors::~MeasuredErrors() {
  if (!written_) try_to_write();
}

void MeasuredErrors::try_to_write() {
  try {
    write();
  } catch (const std::exception&) {
    // They are measured again by the next run.
  }
}

void MeasuredErrors::write() {
  written_ = true;
  since_written_ = Stopwatch();
  if (file_.empty()) return;
  nlohmann::ordered_json root = {{"key", key_}};  // a hash: what it is of may be no UTF-8
  for (const auto& [name, error] : errors_) root["errors"][name] = to_json(error);
  const std::string text = root.dump();
  // Not straight over the old one: what a killed run leaves behind has a name that is known.
  const std::string fresh = file_ + kFreshSuffix;
  std::filesystem::remove(fresh);
  AtomicFile file(fresh);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  std::filesystem::rename(fresh, file_);
}

void MeasuredErrors::forget(const std::string& path) {
  if (path.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(file_of(path), ignored);
  std::filesystem::remove(file_of(path) + kFreshSuffix, ignored);
}

}  // namespace octet::convert
