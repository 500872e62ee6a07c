// Downloads checkpoints from the Hugging Face Hub, into the cache that its other tools share.
//
//   octet::PullRequest request;
//   request.repo = "ideogram-ai/ideogram-4-fp8";
//   const octet::PullReport report = octet::pull(request, {});
//   std::cout << report.folder << "\n";
//
// HF_TOKEN, HF_TOKEN_PATH, HF_HOME, HF_HUB_CACHE, HF_ENDPOINT and HF_HUB_OFFLINE work as in
// huggingface_hub.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct PullRequest {
  std::string repo = {};          // "owner/name"
  std::string revision = "main";  // a branch, a tag or a commit
  // Path patterns: *, ?, [...]; * also matches '/'. Empty: every file.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  std::string cache_dir = {};  // empty: as set by the environment
  int connections = 8;         // in parallel, over all files
  int retries = 5;             // consecutive ones without a byte
};

struct PullStep {
  int64_t done = 0, total = 0;  // bytes of the requested files; total is 0 until they are known
  int64_t fetched = 0;          // of `done`, those downloaded by this call
  std::string checking = {};    // a file whose digest is being computed; or empty
};

// Called about ten times a second, on the thread that called pull(). Return false to stop: pull()
// throws an Error that says so, and a later call resumes where this one stopped.
using OnPullStep = std::function<bool(const PullStep&)>;

struct PulledFile {
  std::string path = {};  // in the repository, and below the report's folder
  int64_t bytes = 0;
  std::string digest = {};  // SHA-256 of files in Git LFS, else git's blob id
  bool fetched = false;     // false: it was already in the cache
};

struct PullReport {
  std::string repo = {}, revision = {};
  std::string commit = {};  // the revision resolved
  std::string folder = {};  // where the files are
  std::vector<PulledFile> files = {};
  int64_t total_bytes = 0;
  int64_t fetched_bytes = 0;  // downloaded by this call
  double seconds = 0;
};

// Throws Error with one sentence. A file appears only when it is complete and its digest matches.
OCTET_API PullReport pull(const PullRequest& request, const OnPullStep& on_step);

}  // namespace octet
