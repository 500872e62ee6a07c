// What is known of a card: cards.json, where each constant has its source.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet::predict {

struct Card {
  std::string id;                  // "rtx3090"
  std::string name;                // "NVIDIA GeForce RTX 3090"
  std::vector<std::string> names;  // as parts of what drivers call it
  int major = 0, minor = 0;        // compute capability
  int multiprocessors = 0;
  double boost_ghz = 0;
  // Operations per clock and multiprocessor, dense, with sums of 32 bits: by the fastest
  // instruction, and by mma.sync. 0: the card cannot.
  double int8 = 0, bf16 = 0, fp8 = 0;
  double int8_mma = 0, bf16_mma = 0;
  double memory_gbs = 0, memory_gib = 0;
  double pcie_gbs = 0;  // of its lanes, in one direction; see host_gbs()
  double l2_bytes = 0, l2_bytes_per_clock = 0;
  int shared_bytes = 0, shared_block_bytes = 0;
  double watts = 0;
  double energy = 1;                   // of an operation, relative to the measured card
  double memory_pj = 0;                // per byte
  std::vector<std::string> estimates;  // names of constants for which there is no public figure
  // Why Octet does not run on it, a part of a sentence; empty: it does. INT8 is not predicted then.
  std::string not_run;

  bool has_wgmma() const { return major == 9 && minor == 0; }
  bool has_tcgen05() const { return major == 10; }
};

const nlohmann::json& cards_data();  // the file
std::span<const Card> cards();

// Throws Error with the known ids, and the one that was probably meant.
const Card& card_of(std::string_view id);

// By its id in any case, as drivers and profilers print it ("NVIDIA A100-SXM4-80GB"), or without
// what all of its kind are called ("3090", "4060ti"). Null for others, among them relatives that
// have other constants ("RTX 3090 Ti", "H100 PCIe", "GH200").
const Card* find_card(std::string_view device);

// A card that a user describes (docs/deployment-map.md): the constants of cards.json as plain
// numbers. Throws Error, naming the file, for what is missing, unknown or out of range.
Card read_card_file(const std::string& path);

}  // namespace octet::predict
