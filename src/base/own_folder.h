// Folders of caches: what lies there is believed, and written, without asking anybody.
#pragma once

#include <filesystem>

namespace octet {

// Throws Error for a folder of another user, or one that everybody may write to: others could put
// files there that this user's programs believe. Also where that holds for env::cache_dir(), if
// that is the folder above, and for a link or a file in its place. Nothing there is fine.
void check_own_folder(const std::filesystem::path& folder);

// The same for one that is made, with its parents, where it is missing.
void make_own_folder(const std::filesystem::path& folder);

}  // namespace octet
