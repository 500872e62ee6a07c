#include "hub/names.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdint>

#include "base/invalid_request.h"
#include "formats/text.h"

namespace octet::hub {
namespace {

constexpr size_t kLongestRepoName = 96;   // the Hub's own limit of each part
constexpr size_t kLongestPart = 255;      // of a path, in bytes: the file systems' limit
constexpr size_t kLongestPath = 2048;     // leaves room for the cache's own folders
constexpr size_t kLongestRevision = 200;  // one part of the path below refs/

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_lower_hex(std::string_view text, size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_repo_part(std::string_view part) {
  if (part.empty() || part.size() > kLongestRepoName) return false;
  const auto is_end = [](char c) { return c == '.' || c == '-'; };
  if (is_end(part.front()) || is_end(part.back())) return false;
  if (part.find("--") != part.npos || part.find("..") != part.npos) return false;
  return std::all_of(part.begin(), part.end(), [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

// "a/b/c" as its parts, which may be empty.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// What is wrong with a relative path, or nullptr.
const char* fault_of_path(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.size() > kLongestPath) return "is too long";
  if (path.front() == '/') return "is absolute";
  if (!is_utf8(path)) return "is not UTF-8";
  for (const char c : path) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7f) return "has a control character";
    if (c == '\\') return "has a backslash";
  }
  for (const std::string_view part : split_path(path)) {
    if (part.empty()) return "has an empty part";
    if (part == "." || part == "..") return "leaves its folder";
    if (part.size() > kLongestPart) return "has a part that is too long";
  }
  return nullptr;
}

bool matches_any(const std::string& path, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&path](std::string pattern) {
    if (!pattern.empty() && pattern.back() == '/') pattern += '*';
    return ::fnmatch(pattern.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
  });
}

constexpr std::string_view kHubHosts[] = {"huggingface.co", "www.huggingface.co", "hf.co"};

std::string_view without_scheme(std::string_view address) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (address.starts_with(scheme)) return address.substr(scheme.size());
  }
  return address;
}

// Without "user:password@".
std::string_view without_user(std::string_view host) {
  const size_t at = host.substr(0, host.find('/')).rfind('@');
  return at == host.npos ? host : host.substr(at + 1);
}

// For what is not an address of a known hub: a password may have any character, even '/', so
// that nothing of such text can be shown. "owner/name@v1" is merely an invalid name.
bool may_have_password(std::string_view text) {
  const size_t at = text.find('@');
  return at != text.npos && (text.find(':') < text.rfind('@') || text.find('/', at) != text.npos);
}

std::string unescape_url(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* begin = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(begin, begin + 2, value, 16).ptr == begin + 2) {
      plain += static_cast<char>(value);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// "owner/name/tree/refs%2Fpr%2F1/" as its parts, each without escapes; the empty ones at the end
// are left out.
std::vector<std::string> parts_of(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string> parts;
  for (const std::string_view part : split_path(path)) parts.push_back(unescape_url(part));
  return parts;
}

}  // namespace

bool is_repo_name(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return false;
  return is_repo_part(text.substr(0, slash)) && is_repo_part(text.substr(slash + 1));
}

void check_repo_name(std::string_view repo) {
  check_value(is_repo_name(repo), "model",
              "{} is not the name of a repository on the Hub, expected owner/name, such as "
              "ideogram-ai/ideogram-4-fp8",
              in_quotes(repo));
}

RepoAddress parse_repo_address(std::string_view given, std::string_view endpoint) {
  // Behind them may be a token, and nothing that says which repository it is.
  const std::string_view text = given.substr(0, given.find_first_of("?#"));
  const bool has_scheme = without_scheme(text).size() < text.size();
  std::string_view path = without_scheme(text);
  const auto host = std::find_if(
      std::begin(kHubHosts), std::end(kHubHosts),
      [&](std::string_view name) { return path.starts_with(std::string(name) + "/"); });
  const std::string_view mirror = without_user(without_scheme(endpoint));
  if (!mirror.empty() && path.starts_with(std::string(mirror) + "/")) {
    path.remove_prefix(mirror.size() + 1);
  } else if (host != std::end(kHubHosts)) {
    path.remove_prefix(host->size() + 1);
  } else {
    check_value(!may_have_password(given), "model",
                "the address of the repository has a name or a password before an '@'; leave them "
                "out, HF_TOKEN or HF_ENDPOINT may hold them");
    check_value(
        !has_scheme, "model",
        "{} is an address on {}, expected one on huggingface.co, or owner/name; HF_ENDPOINT "
        "names another hub",
        in_quotes(path), one_line(path.substr(0, path.find('/'))));
    return {std::string(text), ""};
  }
  const std::vector<std::string> parts = parts_of(path);
  check_value(
      parts.size() >= 2 && parts[0] != "datasets" && parts[0] != "spaces", "model",
      "{} is not the address of a model on the Hub, expected https://huggingface.co/owner/name",
      in_quotes(text));
  RepoAddress address{parts[0] + "/" + parts[1], ""};
  if (parts.size() == 2) return address;
  check_value(parts[2] == "tree" && parts.size() <= 4, "model",
              "{} names a part of {}; name the repository, and the part as `include`",
              in_quotes(text), address.repo);
  if (parts.size() == 4) address.revision = parts[3];
  return address;
}

void check_revision(std::string_view revision) {
  const char* fault = fault_of_path(revision);
  if (fault == nullptr && revision.size() > kLongestRevision) fault = "is too long";
  check_value(fault == nullptr, "revision",
              "the revision {} {}, expected a branch, a tag or a commit", in_quotes(revision),
              fault == nullptr ? "" : fault);
}

void check_file_path(std::string_view path, const std::string& what) {
  const char* fault = fault_of_path(path);
  check(fault == nullptr,
        "{}: the file name {} {}, so nothing of this repository is fetched; report it to the Hub",
        what, in_quotes(path), fault == nullptr ? "" : fault);
}

bool is_sha1(std::string_view text) { return is_lower_hex(text, 40); }
bool is_sha256(std::string_view text) { return is_lower_hex(text, 64); }

std::string escape_url(std::string_view text, bool keep_slashes) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
                       (c == '/' && keep_slashes);
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return escaped;
}

bool is_wanted(const std::string& path, const std::vector<std::string>& include,
               const std::vector<std::string>& exclude) {
  return (include.empty() || matches_any(path, include)) && !matches_any(path, exclude);
}

}  // namespace octet::hub
