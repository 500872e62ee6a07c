#include <charconv>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/regular_file.h"
#include "convert/calibration_job.h"
#include "formats/safetensors.h"
#include "formats/text.h"

namespace octet::convert {
namespace {

constexpr const char* kJob = "octet.calibration.job";
constexpr const char* kCaptions = "octet.calibration.captions";
constexpr const char* kSteps = "octet.calibration.steps";
constexpr const char* kComplete = "octet.calibration.complete";
// Stands among the statistics, so that one format does for both.
constexpr const char* kLatent = "latent";

using Metadata = std::map<std::string, std::string>;

int64_t count_in(const Metadata& metadata, const char* key, const std::string& path) {
  const auto entry = metadata.find(key);
  check(entry != metadata.end(), "{}: its metadata has no {}; remove the file to start again", path,
        key);
  const std::string& text = entry->second;
  int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  check(error == std::errc() && end == text.data() + text.size() && count >= 0,
        "{}: its metadata says {} for {}, expected a count; remove the file to start again", path,
        in_quotes(text), key);
  return count;
}

Metadata metadata_of(const std::string& path) {
  try {
    return SafetensorsFile(path).metadata();
  } catch (const Error& error) {
    fail("{}; expected the state of a calibration, remove the file to start again",
         error.sentence());
  }
}

}  // namespace

void write_state(const std::string& path, const std::string& job, int64_t latent_channels,
                 CalibrationState& state) {
  const Metadata metadata = {{kJob, job},
                             {kCaptions, std::to_string(state.captions)},
                             {kSteps, std::to_string(state.steps)},
                             {kComplete, state.complete ? "yes" : "no"}};
  if (state.latent.empty()) {
    write_statistics(path, state.statistics, metadata);
    return;
  }
  // Lent to the statistics for the time of writing: a copy of these would be large.
  quant::LinearInputs& lent = state.statistics[kLatent];
  lent.k = latent_channels;
  lent.amax = quant::column_amax(state.latent, latent_channels);
  lent.rows = std::move(state.latent);
  const auto give_back = [&] {
    state.latent = std::move(lent.rows);
    state.statistics.erase(kLatent);
  };
  try {
    write_statistics(path, state.statistics, metadata);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
}

bool is_complete(const std::string& path) {
  const Metadata metadata = metadata_of(path);
  const auto entry = metadata.find(kComplete);
  return entry == metadata.end() || entry->second == "yes";
}

CalibrationState read_state(const std::string& path, const std::string& job) {
  CalibrationState state;
  if (!is_file_there(path)) return state;
  const Metadata metadata = metadata_of(path);
  const auto entry = metadata.find(kJob);
  check(entry != metadata.end(),
        "{}: is not the state of a calibration; name another file, or remove it", path);
  state.complete = is_complete(path);
  const bool is_ours = entry->second == job;
  check(is_ours || !state.complete,
        "{}: has the activations of another calibration; name another file, or use it without "
        "captions",
        path);
  state.captions = count_in(metadata, kCaptions, path);
  state.steps = count_in(metadata, kSteps, path);
  if (!is_ours) {
    check(state.captions == 0 && state.steps == 0,
          "{}: belongs to an unfinished calibration; give the same captions to finish it, with the "
          "same flags and model, or remove the file to start again",
          path);
    return {};
  }
  state.statistics = quant::read_statistics(path);
  if (auto latent = state.statistics.extract(kLatent)) {
    state.latent = std::move(latent.mapped().rows);
  }
  check(state.latent.empty() == (state.steps == 0),
        "{}: has {} latent after {} steps; remove the file to start again", path,
        state.latent.empty() ? "no" : "a", state.steps);
  return state;
}

}  // namespace octet::convert
