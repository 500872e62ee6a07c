// Whether a file is still the same, without reading all of it.
//
// Size and time are not enough: cp -p and rsync -t replace a file's bytes and keep both. The text
// here also contains the inode and the time of the last change of any kind (ctime), which no
// program can set, and a hash of samples of the content, for file systems that make up the other
// two. It contains neither the path nor the device number: a folder that was moved is recognised,
// and network file systems get another number whenever they are mounted.
//
// A difference may be harmless (touch, chmod, a hard link); then work is merely done again.
#pragma once

#include <string>

#include "base/mapped_file.h"

namespace octet {

// Of the mapped file, even if another has its name by now.
std::string identity_of(const MappedFile& file);

}  // namespace octet
