#include "engine/kernel_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ebnet {

namespace {

constexpr std::size_t kMostLines = 4096;
constexpr std::size_t kMostBytes = 512;  // of a line

std::string cache_file(const Cache& chosen) {
  if (chosen.has_value()) return chosen->empty() ? "" : *chosen + "/kernels";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/ebnet/kernels";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.cache/ebnet/kernels";
  return "";
}

std::map<std::string, std::string> read(const std::string& file) {
  std::map<std::string, std::string> kernels;
  std::FILE* in = std::fopen(file.c_str(), "r");
  if (in == nullptr) return kernels;
  char line[kMostBytes];
  for (std::size_t count = 0; count < kMostLines && std::fgets(line, sizeof line, in) != nullptr; ++count) {
    line[std::strcspn(line, "\n")] = '\0';
    const char* tab = std::strrchr(line, '\t');
    if (tab != nullptr) kernels[std::string(static_cast<const char*>(line), tab)] = tab + 1;
  }
  std::fclose(in);
  return kernels;
}

}  // namespace

KernelMemory::KernelMemory(Isa isa, const Cache& cache) : file_(cache_file(cache)) {
  if (file_.empty()) return;
  prefix_ = std::string(EBNET_VERSION " " EBNET_BUILD) + '\t' + cpu_name() + '\t' + isa_name(isa) + '\t';
  kernels_ = read(file_);
}

std::string shape_text(const ConvShape& s) {
  std::string text;
  for (const int number : {s.in_channels, s.out_channels, s.groups, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w,
                           s.pad_h, s.pad_w, s.dilation_h, s.dilation_w, s.in_h, s.in_w}) {
    text += std::to_string(number) + ' ';
  }
  return text;
}

std::string KernelMemory::key_of(const ConvShape& shape) const { return prefix_ + shape_text(shape); }

std::string KernelMemory::recall(const ConvShape& shape) const {
  const auto found = kernels_.find(key_of(shape));
  return found == kernels_.end() ? "" : found->second;
}

void KernelMemory::remember(const ConvShape& shape, const std::string& kernel) {
  kernels_[key_of(shape)] = fresh_[key_of(shape)] = kernel;
}

void KernelMemory::save() {
  if (file_.empty() || fresh_.empty()) return;
  std::map<std::string, std::string> all = read(file_);
  for (const auto& [key, kernel] : fresh_) all[key] = kernel;
  while (all.size() > kMostLines) all.erase(all.begin());
  fresh_.clear();
  for (std::size_t slash = file_.find('/', 1); slash != std::string::npos; slash = file_.find('/', slash + 1)) {
    mkdir(file_.substr(0, slash).c_str(), 0777);  // fails where it is there already, and mkstemp tells whether it is
  }
  // Whole or not at all, whoever else writes.
  std::string made = file_ + ".XXXXXX";
  const int descriptor = mkstemp(made.data());
  if (descriptor < 0) return;
  std::FILE* out = fdopen(descriptor, "w");
  bool written = out != nullptr;
  for (const auto& [key, kernel] : all) {
    written = written && std::fprintf(out, "%s\t%s\n", key.c_str(), kernel.c_str()) > 0;
  }
  written = (out != nullptr ? std::fclose(out) : close(descriptor)) == 0 && written;
  if (!written || std::rename(made.c_str(), file_.c_str()) != 0) std::remove(made.c_str());
}

}  // namespace ebnet
