// Whether a file is the one that it was, without reading all of it.
//
// Size and time do not tell: cp -p and rsync -t put other bytes in a file's place and keep both.
// The text here also holds the inode and the time of the last change of any kind (ctime), which no
// program can set, and a hash of samples of the content, for file systems that make up the other
// two. It holds neither the path nor the number of the device: a folder that was moved is known
// again, and network file systems get another number whenever they are mounted.
//
// A difference may mean nothing (touch, chmod, a hard link): that costs doing the work again.
#pragma once

#include <string>

#include "base/mapped_file.h"

namespace octet {

// Of the file that was mapped, whatever has its name by now.
std::string identity_of(const MappedFile& file);

}  // namespace octet
