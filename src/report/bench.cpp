// Times of INT8 linears, of one linear on three paths, and of quantizing activations.
#include <fmt/format.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const GemmBenchRow& row) {
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
  json = joined({OCTET_FIELDS(row.shape, m, n, k), OCTET_FIELDS(row, path, kernel),
                 OCTET_KNOWN_FIELDS(row, plan), OCTET_FIELDS(row, us, tops),
                 OCTET_KNOWN_FIELDS(row, ceiling_tops, ceiling_share, quantize_us),
                 OCTET_FIELDS(row, linear_us), field("peers_us", peers_us), field("ratio", ratio),
                 row.steadiness});
}

OCTET_JSON(LinearPath, name, us, relative_error)

static void to_json(Json& json, const QuantizeBenchRow& row) {
  json = joined({OCTET_FIELDS(row, rows, k, transform, us, bytes, gb_per_s, copy_us, copy_gb_per_s,
                              share_of_copy),
                 row.steadiness});
}

namespace {

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
  return document("octet.bench.gemm/1",
                  OCTET_FIELDS(bench, device, date, commit, dtype, threads, rows));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const GemmBench& bench) try {
  Speeds speed;
  for (const GemmBenchRow& row : bench.rows) speed.see(row.tops);
  std::vector<std::string> header = {
      "kernel",         "path",        "m",       "n",           "k",
      "gemm us",        speed.unit(),  "of peak", "quantize us", "linear us",
      "vs unquantized", "vs fake INT8"};
  const auto peers = peer_names(bench);
  if (!peers.empty()) header.emplace_back("gemm vs unquantized");
  for (const std::string& name : peers) header.push_back("gemm vs " + name + " + dequantize");
  Table table(header, 2);
  for (const auto& row : bench.rows) {
    const auto figure = [&row](const std::string& text) { return marked(text, row.steadiness); };
    std::vector<std::string> cells = {row.kernel,
                                      row.path,
                                      std::to_string(row.shape.m),
                                      std::to_string(row.shape.n),
                                      std::to_string(row.shape.k),
                                      figure(short_number(row.us)),
                                      figure(speed(row.tops)),
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
      unreliable_line(bench.rows));
} catch (...) {
  rethrow_as_error();
}

std::string to_json(const LinearComparison& comparison) try {
  return document(
      "octet.bench.linear/1",
      joined({OCTET_FIELDS(comparison, device, kernel), OCTET_FIELDS(comparison.shape, m, n, k),
              OCTET_FIELDS(comparison, paths), comparison.steadiness}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const LinearComparison& comparison) try {
  double longest = 0;
  double native = 0;
  for (const auto& path : comparison.paths) {
    longest = std::max(longest, path.us);
    native = path.us;  // the last one
  }
  Table table({"path", "", "how", "ms", "native is", "error"}, 3);
  const auto figure = [&](const std::string& text) { return marked(text, comparison.steadiness); };
  for (const auto& path : comparison.paths) {
    table.add({path.name, bar(path.us / longest), path.how,
               figure(fmt::format("{:.2f}", path.us * 1e-3)),
               &path == &comparison.paths.back()
                   ? "-"
                   : figure(fmt::format("{:.2f}x faster", path.us / native)),
               fmt::format("{:.2f} %", path.relative_error * 100)});
  }
  return fmt::format(
      "One linear of a diffusion transformer, {} tokens, {} -> {} channels, on\n{}\n\n{}"
      "\nThe native path ran the kernel {}. Error: against the exact product.\n{}",
      comparison.shape.m, comparison.shape.k, comparison.shape.n, comparison.device, table.text(),
      comparison.kernel, comparison.steadiness.reliable ? "" : kUnreliableLine);
} catch (...) {
  rethrow_as_error();
}

std::string to_json(const QuantizeBench& bench) try {
  return document("octet.bench.quantize/1",
                  OCTET_FIELDS(bench, device, date, commit, dtype, threads, rows));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const QuantizeBench& bench) try {
  Table table({"transform", "rows", "k", "us", "GB/s", "copy us", "copy GB/s", "of the copy"}, 1);
  for (const auto& row : bench.rows) {
    const auto figure = [&row](const std::string& text) { return marked(text, row.steadiness); };
    table.add({row.transform, std::to_string(row.rows), std::to_string(row.k),
               figure(short_number(row.us)), figure(short_number(row.gb_per_s)),
               figure(short_number(row.copy_us)), figure(short_number(row.copy_gb_per_s)),
               figure(short_percent(row.share_of_copy))});
  }
  return fmt::format(
      "{}\nrows of {} to int8\n\n{}\nMedians, interleaved. GB/s: bytes read and written. Copy: one "
      "that reads and writes as many.\n{}",
      bench.device, bench.dtype, table.text(), unreliable_line(bench.rows));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
