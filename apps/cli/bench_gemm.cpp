// octet bench gemm
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/bench.h"
#include "output.h"
#include "output_files.h"
#include "steadiness.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const GemmBenchRow& row) {
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

Json to_json(const GemmBench& bench) {
  Json rows = Json::array();
  for (const auto& row : bench.rows) rows.push_back(to_json(row));
  return {{"device", bench.device}, {"date", bench.date},       {"commit", bench.commit},
          {"dtype", bench.dtype},   {"threads", bench.threads}, {"rows", rows}};
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

std::string to_text(const GemmBench& bench) {
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
}

}  // namespace

void add_bench_gemm(CLI::App& bench, CommonFlags& flags) {
  CLI::App* gemm = bench.add_subcommand("gemm",
                                        "INT8 linears against the unquantized and the "
                                        "fake INT8 path");
  add_device_flags(*gemm, flags);
  add_output_flags(*gemm, flags);
  const auto request = std::make_shared<GemmBenchRequest>();
  const auto shapes = std::make_shared<std::string>(model_shapes("1024"));
  const auto only_native = std::make_shared<bool>(false);
  add_shapes(*gemm, *shapes);
  add_choice(
      *gemm, "--dtype", request->dtype, word_list<Activations>(),
      "Type of activations and outputs; f32 is compared with full-precision F32, also on a GPU");
  add_choice(*gemm, "--path", request->path, {"auto", "int8", "bf16"},
             "Path of the linear; auto is the faster one");
  add_choice(*gemm, "--tune", request->tune,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
  constexpr double kMostSeconds = 3600;
  add_seconds(*gemm, "--seconds", request->seconds, kMostSeconds, "At least this long per shape");
  CLI::Option* native =
      gemm->add_flag("--only-native", *only_native, "Measure only the native path");
  gemm->add_flag("--peers", request->peers,
                 "Also compare with the INT8 GEMM of the device's own library")
      ->excludes(native);
  set_examples(*gemm, {"octet bench gemm --shapes '4096,5120,5120;1,5120,5120'",
                       "octet bench gemm --device cuda --peers --json gemm.json"});
  gemm->callback([&flags, request, shapes, only_native] {
    request->shapes = shapes_from(*shapes);
    request->device = flags.device;
    request->threads = flags.threads;
    request->compare = !*only_native;
    if (request->path != "int8" && request->dtype != "bf16") {
      throw CLI::ValidationError(fmt::format("--path {} needs --dtype bf16, got --dtype {}",
                                             request->path, request->dtype));
    }
    if (request->peers && request->path == "bf16") {
      throw CLI::ValidationError(
          "--peers compares INT8 GEMMs, expected --path int8 or auto, got --path bf16");
    }
    check_outputs(flags);
    const GemmBench result = [&] {
      ProgressReports progress(flags, "bench gemm", "shapes");
      return bench_gemm(*request, std::ref(progress));
    }();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
