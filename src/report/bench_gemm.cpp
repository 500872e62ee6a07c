// Times of INT8 linears.
#include <fmt/format.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

Json json_of(const GemmBenchRow& row) {
  Json ratio = Json::object();
  Json peers_us = Json::object();
  if (row.unquantized_us > 0) {
    peers_us = {{"unquantized", row.unquantized_us}, {"fake_int8", row.fake_int8_us}};
    ratio = {{"unquantized", row.ratio_unquantized()},
             {"gemm_unquantized", row.ratio_to_gemm(row.unquantized_us)},
             {"fake_int8", row.ratio_fake_int8()}};
  }
  for (const GemmPeerTime& peer : row.peers) {
    peers_us[peer.name] = peer.us;
    ratio[peer.name] = row.ratio_to_gemm(peer.us);
  }
  Json json = {{"m", row.shape.m},
               {"n", row.shape.n},
               {"k", row.shape.k},
               {"path", row.path},
               {"kernel", row.kernel},
               {"plan", known(row.plan)},
               {"us", row.us},
               {"tops", row.tops},
               {"ceiling_tops", known(row.ceiling_tops)},
               {"ceiling_share", known(row.ceiling_share)},
               {"quantize_us", known(row.quantize_us)},
               {"linear_us", row.linear_us},
               {"peers_us", peers_us},
               {"ratio", ratio}};
  add_steadiness(json, row.steadiness);
  return json;
}

std::string times_faster(double ratio) { return ratio > 0 ? fmt::format("{:.2f}x", ratio) : "-"; }

// Names of all peers, in the order in which they first appear: a row lacks those that refused it.
std::vector<std::string> peer_names(const GemmBench& bench) {
  std::vector<std::string> names;
  for (const auto& row : bench.rows) {
    for (const GemmPeerTime& peer : row.peers) {
      if (std::find(names.begin(), names.end(), peer.name) == names.end()) {
        names.push_back(peer.name);
      }
    }
  }
  return names;
}

double peer_us(const GemmBenchRow& row, const std::string& name) {
  for (const GemmPeerTime& peer : row.peers) {
    if (peer.name == name) return peer.us;
  }
  return 0;
}

}  // namespace

std::string to_json(const GemmBench& bench) try {
  return document("octet.bench.gemm/1", {{"device", bench.device},
                                         {"date", bench.date},
                                         {"commit", bench.commit},
                                         {"dtype", bench.dtype},
                                         {"threads", bench.threads},
                                         {"rows", list_of(bench.rows, json_of)}});
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const GemmBench& bench) try {
  constexpr double kLargeTops = 10;
  const auto& rows = bench.rows;
  const bool large = std::any_of(rows.begin(), rows.end(),
                                 [](const GemmBenchRow& row) { return row.tops >= kLargeTops; });
  std::vector<std::string> header = {"kernel",
                                     "path",
                                     "m",
                                     "n",
                                     "k",
                                     "gemm us",
                                     large ? "TOPS" : "GOPS",
                                     "of peak",
                                     "quantize us",
                                     "linear us",
                                     "vs unquantized",
                                     "vs fake INT8"};
  const auto peers = peer_names(bench);
  if (!peers.empty()) header.emplace_back("gemm vs unquantized");
  for (const std::string& name : peers) header.push_back("gemm vs " + name + " + dequantize");
  Table table(header, 2);
  for (const auto& row : rows) {
    const auto figure = [&row](const std::string& text) { return marked(text, row.steadiness); };
    std::vector<std::string> cells = {row.kernel,
                                      row.path,
                                      std::to_string(row.shape.m),
                                      std::to_string(row.shape.n),
                                      std::to_string(row.shape.k),
                                      figure(short_number(row.us)),
                                      figure(short_number(large ? row.tops : row.tops * 1e3)),
                                      figure(short_percent(row.ceiling_share)),
                                      figure(short_number(row.quantize_us)),
                                      figure(short_number(row.linear_us)),
                                      figure(times_faster(row.ratio_unquantized())),
                                      figure(times_faster(row.ratio_fake_int8()))};
    if (!peers.empty()) {
      cells.push_back(figure(times_faster(row.ratio_to_gemm(row.unquantized_us))));
    }
    for (const std::string& name : peers) {
      cells.push_back(figure(times_faster(row.ratio_to_gemm(peer_us(row, name)))));
    }
    table.add(std::move(cells));
  }
  return fmt::format(
      "{}\nactivations and outputs {}\n\n{}\nMedians, all paths interleaved. Peak: the multiply "
      "instruction with its operands at hand.\n"
      "Linear: quantizing the activations + gemm. vs: how many times faster the linear is, or\n"
      "where it says so, the gemm alone.\n{}{}",
      bench.device, bench.dtype, table.text(),
      peers.empty() ? "" : "A library's gemm includes its dequantization pass, as ours does.\n",
      unreliable_line(rows));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
