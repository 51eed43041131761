#include "engine/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/error.h"

namespace ebnet {

FileSource::FileSource(const std::string& path) : path_(path) {
  if (path.find('\0') != std::string::npos) fail(Error::FileUnreadable, quoted(path) + ": a path has no NUL in it");
  // Not blocking: opening a pipe would otherwise wait for a writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    fail(errno == ENOENT ? Error::FileMissing : Error::FileUnreadable, path + ": " + std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    fail(Error::FileUnreadable, path + ": not a regular file");
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

FileSource::~FileSource() { ::close(descriptor_); }

void FileSource::read(std::uint64_t offset, void* destination, std::size_t count) const {
  auto* out = static_cast<char*>(destination);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_, out, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Error::FileUnreadable, path_ + ": " + std::strerror(errno));
    if (got == 0) fail(Error::FileTruncated, path_ + ": ends before byte " + std::to_string(offset + count));
    out += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

void MemorySource::read(std::uint64_t offset, void* destination, std::size_t count) const {
  if (offset > bytes_.size() || count > bytes_.size() - offset) {
    fail(Error::FileTruncated, "the data ends before byte " + std::to_string(offset + count));
  }
  if (count > 0) std::memcpy(destination, bytes_.data() + offset, count);
}

}  // namespace ebnet
