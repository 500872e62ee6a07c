// What was pulled from the Hub.
#include <fmt/format.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const PulledFile& file) {
  json = joined({OCTET_FIELDS(file, path, bytes), OCTET_KNOWN_FIELDS(file, digest),
                 OCTET_FIELDS(file, fetched)});
}

std::string to_json(const PullReport& report) try {
  return document(
      "octet.pull/1",
      joined({OCTET_FIELDS(report, repo, revision), OCTET_KNOWN_FIELDS(report, commit),
              OCTET_FIELDS(report, folder, total_bytes, fetched_bytes, seconds, files)}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const PullReport& report, Detail detail) try {
  if (detail == Detail::brief) return printable(report.folder) + "\n";
  Table table({"file", "from", "bytes"}, 2);
  for (const PulledFile& file : report.files) {
    table.add({printable(file.path), file.fetched ? "Hub" : "cache",
               human_bytes(static_cast<uint64_t>(file.bytes))});
  }
  const auto fetched = static_cast<uint64_t>(report.fetched_bytes);
  std::string speed;
  if (fetched > 0 && report.seconds > 0) {
    speed = fmt::format(", {}/s", human_bytes(static_cast<uint64_t>(static_cast<double>(fetched) /
                                                                    report.seconds)));
  }
  return fmt::format("{} {} ({})\n\n{}\n{} fetched in {:.1f} s{}\n{}\n", report.repo,
                     printable(report.revision), report.commit.substr(0, 12), table.text(),
                     human_bytes(fetched), report.seconds, speed, printable(report.folder));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
