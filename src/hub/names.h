// Names that a repository, its files and its revisions have on the Hub. They end up in paths of the
// cache and in URLs, and a stranger chose them: what could leave its folder is refused here.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::hub {

// "owner/name": letters, digits, '.', '_' and '-' in each part, no "--", no ".." and no dot or dash
// at an end of a part.
bool is_repo_name(std::string_view text);
void check_repo_name(std::string_view repo);  // Error when it is not one

// What a user names: "owner/name", or its address as a browser shows it.
struct RepoAddress {
  std::string repo;
  std::string revision;  // that the address names, as in .../tree/v1; empty: none
};

// Addresses of huggingface.co and of `endpoint`, with or without https://. Error for those of other
// hosts, of single files, and of anything but a model.
RepoAddress parse_repo_address(std::string_view text, std::string_view endpoint);

// A branch, tag, commit or "refs/pr/1".
void check_revision(std::string_view revision);

// A file's path inside of a repository: relative, '/' between parts, none of them empty, "." or
// "..", nothing that a file system or a terminal could misread. `what` begins the sentence.
void check_file_path(std::string_view path, const std::string& what);

// A whole commit id, or a git blob id: 40 lower-case hexadecimal digits.
bool is_sha1(std::string_view text);
bool is_sha256(std::string_view text);  // 64 of them

// %XX for everything but letters, digits and "-._~", and '/' where `keep_slashes`.
std::string escape_url(std::string_view text, bool keep_slashes);

// The decimal number that a text is, and nothing else.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

// Whether a file is wanted: it matches one of `include` (or that is empty) and none of `exclude`.
// Patterns are those of huggingface_hub: *, ?, [...]; * also matches '/', and a pattern that ends
// with '/' means all below.
bool is_wanted(const std::string& path, const std::vector<std::string>& include,
               const std::vector<std::string>& exclude);

}  // namespace octet::hub
