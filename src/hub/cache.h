// The folder in which the tools of the Hugging Face Hub keep what they fetched, laid out as
// huggingface_hub does it, so that all of them share one copy:
//
//   <cache>/models--owner--name/blobs/<etag>                the content
//   <cache>/models--owner--name/snapshots/<commit>/<path>   -> ../../blobs/<etag>
//   <cache>/models--owner--name/refs/<revision>             the commit that it meant last
//   <cache>/.locks/models--owner--name/<etag>.lock          held while a blob is fetched
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace octet::hub {

// The cache that the environment names; `given` wins where it is not empty.
std::filesystem::path cache_folder(const std::string& given = {});

class RepoCache {
 public:
  RepoCache(std::filesystem::path cache, const std::string& repo);

  const std::filesystem::path& cache() const { return cache_; }
  const std::filesystem::path& folder() const { return folder_; }  // of all that it has
  std::filesystem::path locks() const { return cache_ / ".locks" / name_; }
  std::filesystem::path blob(const std::string& etag) const { return folder_ / "blobs" / etag; }
  std::filesystem::path lock(const std::string& etag) const;
  std::filesystem::path snapshot(const std::string& commit) const;

  // Makes blobs/, the snapshot's folder and that of the locks.
  void make_folders(const std::string& commit) const;

  // Whether the snapshot has the file with this size: a link to this blob, or a copy, which
  // huggingface_hub makes where there are no symbolic links.
  bool has_file(const std::string& commit, const std::string& path, uint64_t size,
                const std::string& etag) const;
  bool has_blob(const std::string& etag, uint64_t size) const;

  // Lets the snapshot's `path` lead to the blob. Folders on the way are made; one that is a link is
  // an Error, since it could lead out of the cache.
  void link(const std::string& commit, const std::string& path, const std::string& etag) const;

  void write_ref(const std::string& revision, const std::string& commit) const;
  // The commit that a revision meant when it was last fetched, itself when it is a whole commit
  // id; empty when unknown.
  std::string commit_of(const std::string& revision) const;

 private:
  std::filesystem::path cache_;
  std::string name_;  // "models--owner--name"
  std::filesystem::path folder_;
};

// The folder of the files of a repository that were fetched before; empty when there is none.
std::string find_snapshot(const std::string& repo, const std::string& revision = "main",
                          const std::string& cache_dir = {});

// What a user may call a model: a path, or owner/name when there is no such path, which is then
// looked for in the cache; Error, with the command that fetches it, when it is not there. What can
// only be a path is returned as it is, for the reader to complain about.
std::string find_model(const std::string& path_or_repo);

}  // namespace octet::hub
