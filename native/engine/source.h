// Where a packed file's bytes come from. Reads are positioned and checked: a file that shrinks while it is read gives
// an error, where a memory map would give a signal.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ebnet {

class Source {
 public:
  virtual ~Source() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `destination` with `count` bytes from `offset`; throws FileTruncated where they are not there.
  virtual void read(std::uint64_t offset, void* destination, std::size_t count) const = 0;
};

class FileSource : public Source {
 public:
  explicit FileSource(const std::string& path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, void* destination, std::size_t count) const override;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// A copy of bytes in memory.
class MemorySource : public Source {
 public:
  MemorySource(const void* data, std::size_t size)
      : bytes_(static_cast<const std::uint8_t*>(data), static_cast<const std::uint8_t*>(data) + size) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, void* destination, std::size_t count) const override;

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace ebnet
