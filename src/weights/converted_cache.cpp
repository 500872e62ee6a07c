#include "weights/converted_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/env.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/regular_file.h"
#include "formats/safetensors.h"
#include "formats/text.h"
#include "nn/linear_list.h"
#include "weights/dialects/output_dialect.h"

namespace octet::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKeyEntry = "octet_converted_from";
constexpr uint64_t kDefaultMaxBytes = 40'000'000'000;
// The first line of every key: another way to make codes, or to know a file, gets another number.
constexpr const char* kFormat = "octet converted weights 3\n";
constexpr std::string_view kCacheSuffix = ".safetensors";
constexpr const char* kMadeFrom = "octet.made_from";  // the tensor of a fingerprint

// The weights that a Loader converts, and the tensors that they become.
struct Converted {
  std::vector<TensorDeclaration> tensors;
  std::map<std::string, std::string> names, quant;
  std::string text;
};
Converted converted_linears(const WeightSource& source, std::span<const nn::LinearSpec> linears) {
  Converted made;
  for (const nn::LinearSpec& spec : linears) {
    for (const auto& part : layout_in(source, spec)) {
      const auto weight = source.weight(part.name, part.rows, spec.k);
      if (weight->is_int8() || !runs_in_int8(source, spec, *weight) ||
          !can_say(OutputDialect::comfyui, weight->transform().kind)) {
        continue;
      }
      made.names.emplace(weight->module(), part.name);
      const std::string& quant =
          made.quant.emplace(part.name, comfy_quant(weight->transform())).first->second;
      const auto declared =
          declare_int8(OutputDialect::comfyui, part.name, part.rows, spec.k, weight->transform());
      made.tensors.insert(made.tensors.end(), declared.begin(), declared.end());
      made.text += fmt::format("{} [{}, {}] {}\n", part.name, part.rows, spec.k, quant);
    }
  }
  return made;
}

// Of a file in the cache, finished or not, which may be of an older format: its header begins with
// the metadata, in the order of their keys.
bool has_our_header(const std::string& path) {
  constexpr size_t kLengthBytes = 8;
  const std::string ours = fmt::format(R"({{"{}":{{"format":"pt","{}":"octet converted weights )",
                                       kMetadataKey, kKeyEntry);
  const auto start = read_start(path, kLengthBytes + ours.size());
  return start && start->size() == kLengthBytes + ours.size() && start->ends_with(ours);
}

// "0123456789abcdef" and what follows it; nothing for another name.
std::optional<std::string> suffix_behind_hash(const std::string& name) {
  constexpr size_t kDigits = 16;
  if (name.find_first_not_of("0123456789abcdef") != kDigits) return std::nullopt;
  return name.substr(kDigits);
}

// Whether the cache wrote it, by its name and by what is in it: a folder may hold other things, and
// those are nobody's to count or to remove.
bool is_ours(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.symlink_status(error).type() != fs::file_type::regular) return false;
  const auto suffix = suffix_behind_hash(entry.path().filename().string());
  const std::string path = entry.path().string();
  try {
    if (suffix == ".safetensors" || suffix == ".safetensors.part") return has_our_header(path);
    return (suffix == ".safetensors.part.journal" || suffix == ".safetensors.part.journal.new") &&
           is_resume_journal(path);
  } catch (const Error&) {
    return false;  // it cannot be read
  }
}

// Uses are kept as times of access: to a process that has the file mapped, a new time of
// modification says that somebody writes to it (MappedFile::check_intact).
void set_access_time(const std::string& path, timespec time) {
  const timespec times[] = {time, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  // A cache that cannot be written can still be read.
  [[maybe_unused]] const int ignored = ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

// In nanoseconds since 1970. Making a file sets only its time of modification everywhere.
int64_t last_use(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return std::max(nanoseconds(status.st_atim), nanoseconds(status.st_mtim));
}

bool is_link(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::symlink;
}

// Whether the part next to a journal belongs to another process.
bool is_foreign_part(const std::string& target) {
  std::error_code error;
  const fs::directory_entry part(target + ".part", error);
  return part.symlink_status(error).type() != fs::file_type::not_found && !is_ours(part);
}

void tell_made_again(const std::exception& error) {
  log::warning("converted weights are made again: {}", one_line(error.what()));
}

// Files of the cache, those that were not used for longest first. A file that is being made counts
// with what belongs to it, under the name that it will have.
struct CachedFile {
  std::string path;
  uint64_t bytes = 0;
  int64_t used = 0;
  bool is_whole = false;    // the file itself is there
  bool is_partial = false;  // its part or a journal is
};
std::vector<CachedFile> cached_files(const fs::path& folder) {
  std::map<std::string, CachedFile> found;
  std::error_code error;
  for (const std::string& name : names_in(folder.string(), error)) {
    std::error_code gone;
    const fs::directory_entry entry(folder / name, gone);
    const std::string path = entry.path().string();
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0) continue;  // it is gone by now
    if (!is_ours(entry)) continue;
    set_access_time(path, status.st_atim);  // to look at it is not to use it
    const size_t end = path.rfind(kCacheSuffix) + kCacheSuffix.size();
    const std::string target = path.substr(0, end);
    if (is_link(target)) continue;  // what is removed would be where the link leads
    CachedFile& file = found[target];
    file.bytes += static_cast<uint64_t>(status.st_size);
    file.used = std::max(file.used, last_use(status));
    (end == path.size() ? file.is_whole : file.is_partial) = true;
  }
  check(!error, "the folder {} cannot be read: {}", folder.string(), error.message());
  std::vector<CachedFile> files;
  for (auto& [path, file] : found) {
    file.path = path;
    files.push_back(file);
  }
  std::ranges::sort(files,
                    [](const CachedFile& a, const CachedFile& b) { return a.used < b.used; });
  return files;
}

}  // namespace

ConvertedCacheOptions default_converted_cache() {
  ConvertedCacheOptions options{.folder = {}, .max_bytes = kDefaultMaxBytes};
  if (const auto folder = env::cache_dir()) options.folder = *folder / "converted";
  if (const auto text = env::cache_max_gb()) {
    double gigabytes = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, gigabytes);
    if (stop == end && error == std::errc() && gigabytes >= 0 && gigabytes <= 1e9) {
      options.max_bytes = static_cast<uint64_t>(gigabytes * 1e9);
    } else {
      log::warning("OCTET_CACHE_MAX_GB is {}, expected a number of gigabytes; {} are used",
                   in_quotes(*text), kDefaultMaxBytes / 1'000'000'000);
    }
  }
  return options;
}

ConvertedCache::ConvertedCache(ConvertedCacheOptions options, const WeightSource& source,
                               const std::function<void(nn::WeightVisitor&)>& visit,
                               std::span<const std::string> changes)
    : options_(std::move(options)) {
  if (options_.folder.empty() || options_.max_bytes == 0) return;
  nn::LinearList list;
  visit(list);
  Converted made = converted_linears(source, list.linears());
  if (made.tensors.empty()) return;
  tensors_ = std::move(made.tensors);
  tensors_.push_back({kMadeFrom, DType::u8, {sizeof(uint64_t)}});
  names_ = std::move(made.names);
  quant_ = std::move(made.quant);
  attempt([&] {
    check_own_folder(options_.folder);
    std::string key = kFormat + source.identity();
    for (const std::string& change : changes) key += "change " + change + "\n";
    key += fmt::format("weights {:016x}\n", hash_text(made.text));
    path_ = (options_.folder / fmt::format("{:016x}{}", hash_text(key), kCacheSuffix)).string();
    key_ = key;
  });
}

void ConvertedCache::attempt(const std::function<void()>& task) {
  try {
    task();
  } catch (const std::exception& error) {
    log::warning("converted weights are not kept: {}", one_line(error.what()));
    key_.clear();
    file_.reset();
  }
}

std::shared_ptr<const Checkpoint> ConvertedCache::find() const {
  if (key_.empty()) return nullptr;
  try {
    if (!is_file_there(path_)) return nullptr;
    auto found = std::make_shared<Checkpoint>(path_);
    const auto made_from = found->metadata().find(kKeyEntry);
    if (made_from == found->metadata().end() || made_from->second != key_) return nullptr;
    for (const TensorDeclaration& tensor : tensors_) {
      const TensorInfo* info = found->find(tensor.name);
      if (info == nullptr || info->dtype != tensor.dtype || info->shape != tensor.shape) {
        return nullptr;
      }
    }
    check_content(*found);
    set_access_time(path_, {.tv_sec = 0, .tv_nsec = UTIME_NOW});
    ResumableSafetensors::tidy_up(path_);
    return found;
  } catch (const std::exception& error) {
    tell_made_again(error);
    return nullptr;
  }
}

// What is small: reading all codes would take as long as loading them.
void ConvertedCache::check_content(const Checkpoint& found) const {
  for (const auto& [module, quant] : quant_) {
    const auto stored = found.bytes(module + ".comfy_quant");
    check(std::ranges::equal(stored, std::as_bytes(std::span(quant))),
          "{}: the format of {} is damaged", found.path(), in_quotes(module));
    check(all_finite(found.bytes(module + ".weight_scale"), DType::f32, DType::f32),
          "{}: the scales of {} are damaged", found.path(), in_quotes(module));
  }
  found.check_intact();
}

// By what errors about files begin with.
bool ConvertedCache::is_damaged(const Checkpoint& found, const Error& error) {
  if (!std::string_view(error.what()).starts_with(found.path() + ":")) return false;
  tell_made_again(error);
  return true;
}

// Oldest first, until there is room. A part that another process is writing is locked, and stays.
void ConvertedCache::make_room(uint64_t bytes) const {
  check(bytes <= options_.max_bytes,
        "they take {} MB and the cache may have {}; "
        "OCTET_CACHE_MAX_GB sets the limit",
        bytes / 1'000'000, options_.max_bytes / 1'000'000);
  uint64_t total = bytes;
  const std::vector<CachedFile> files = cached_files(options_.folder);
  for (const CachedFile& file : files) {
    if (file.is_partial && !is_link(file.path + ".part")) {
      ResumableSafetensors::tidy_up(file.path);
    }
    if (file.path != path_) total += file.bytes;
  }
  for (const CachedFile& file : files) {
    if (total <= options_.max_bytes) return;
    if (file.path == path_) continue;
    const bool keeps_part = file.is_partial && is_foreign_part(file.path);
    if (keeps_part && !file.is_whole) continue;
    try {
      if (file.is_partial && !keeps_part) ResumableSafetensors::discard(file.path);
    } catch (const Error&) {
      continue;
    }
    std::error_code ignored;
    if (file.is_whole) fs::remove(file.path, ignored);
    total -= file.bytes;
    log::debug("{}: removed from the cache of converted weights", file.path);
  }
}

void ConvertedCache::start() {
  make_own_folder(options_.folder);
  uint64_t bytes = 0;
  for (const auto& tensor : tensors_) {
    bytes += storage_bytes(path_, tensor.name, tensor.dtype, tensor.shape);
  }
  make_room(bytes);
  file_ = std::make_unique<ResumableSafetensors>(
      path_, tensors_, std::map<std::string, std::string>{{"format", "pt"}, {kKeyEntry, key_}},
      key_, ResumeOptions{.at_link = AtLink::replace});
}

Fingerprint ConvertedCache::made_from(const Checkpoint& found) {
  uint64_t value = 0;
  std::memcpy(&value, found.bytes(kMadeFrom).data(), sizeof(value));
  found.check_intact();
  return Fingerprint(value);
}

void ConvertedCache::keep(const StoredWeight& weight, const QTensor& codes,
                          const Fingerprint& made_from) {
  const auto name = names_.find(weight.module());
  if (key_.empty() || name == names_.end()) return;
  made_from_.add(made_from);
  attempt([&] {
    if (file_ == nullptr) start();
    const std::string quant = comfy_quant(weight.transform());
    const auto put = [&](const char* tensor, std::span<const std::byte> bytes) {
      const std::string full = name->second + tensor;
      if (file_->is_finished(full)) return;
      file_->write(full, 0, bytes);
      file_->finish(full);
    };
    const auto rows = static_cast<size_t>(codes.rows());
    put(".weight", {codes.values.data, rows * static_cast<size_t>(codes.k())});
    put(".weight_scale", {codes.scales.data, rows * sizeof(float)});
    put(".comfy_quant", std::as_bytes(std::span(quant)));
  });
}

void ConvertedCache::commit() {
  if (key_.empty() || file_ == nullptr) return;
  attempt([&] {
    const uint64_t value = made_from_.value();
    if (!file_->is_finished(kMadeFrom)) {
      file_->write(kMadeFrom, 0, std::as_bytes(std::span(&value, 1)));
      file_->finish(kMadeFrom);
    }
    file_->commit();
    file_.reset();
  });
}

}  // namespace octet::weights
