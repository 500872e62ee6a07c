#include "base/device_name.h"

#include <algorithm>
#include <cctype>

namespace octet {
namespace {

bool is_digit(unsigned char c) { return std::isdigit(c) != 0; }

bool is_idle_word(const std::string& word) {
  const bool is_size = word.size() > 2 && word.ends_with("gb") &&
                       std::all_of(word.begin(), word.end() - 2, is_digit);
  return is_size || word == "nvidia" || word == "geforce" || word == "tesla" || word == "amd" ||
         word == "instinct" || word == "gpu" || word == "hbm2" || word == "hbm2e" ||
         word == "hbm3" || word == "hbm3e" || word.starts_with("sxm");
}

}  // namespace

std::vector<std::string> words_of_device(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) {
      words.back() += static_cast<char>(std::tolower(byte));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool is_called(std::span<const std::string> device, std::string_view name) {
  std::vector<std::string> wanted = words_of_device(name);
  // "3090" is as good as "RTX 3090", and "4060ti" as the id "rtx4060ti".
  if (device.size() == 1 && wanted.size() == 1 && wanted[0] == "rtx" + device[0]) return true;
  const bool has_series = std::find(device.begin(), device.end(), "rtx") != device.end();
  if (!has_series && wanted.size() > 1 && wanted[0] == "rtx" && is_digit(wanted[1][0])) {
    wanted.erase(wanted.begin());
  }
  const auto found = std::search(device.begin(), device.end(), wanted.begin(), wanted.end());
  return found != device.end() && std::all_of(device.begin(), found, is_idle_word) &&
         std::all_of(found + std::ssize(wanted), device.end(), is_idle_word);
}

}  // namespace octet
