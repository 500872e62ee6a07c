// System calls for a large file that is written in place: opened by one process at a time, with its
// room taken at once, and read and written at offsets by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace octet {

// Closes a descriptor, unless it is negative, on every way out.
struct Descriptor {
  int fd;
  ~Descriptor();
};

enum class IfAbsent { create, nothing };

// Opens a regular file for reading and writing and locks it as long as it is open. Throws Error
// when another process holds the lock. Negative for IfAbsent::nothing when there is no file.
int open_locked(const std::string& path, IfAbsent if_absent);

// Sets the file's size and, where the file system can, takes the room for it: a disk that is too
// small is told at once and not after hours.
void reserve_room(int fd, const std::string& path, uint64_t size);

// These transfer all of the bytes, or return false and leave the reason in errno.
bool read_at(int fd, uint64_t offset, std::span<std::byte> bytes);
bool write_at(int fd, uint64_t offset, std::span<const std::byte> bytes);

}  // namespace octet
