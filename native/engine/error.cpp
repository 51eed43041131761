#include "engine/error.h"

#include <exception>
#include <new>

namespace ebnet {

const char* error_name(Error error) {
  switch (error) {
#define X(name, number) \
  case Error::name:     \
    return #name;
    EBNET_ERRORS(X)
#undef X
  }
  return "Unknown";
}

std::string quoted(const std::string& text) {
  constexpr std::size_t kLongest = 80;
  std::string out = "'";
  for (std::size_t i = 0; i < text.size() && i < kLongest; ++i) {
    const char c = text[i];
    out += (c >= 0x20 && c < 0x7f) ? c : '?';
  }
  if (text.size() > kLongest) out += "...";
  return out + "'";
}

Status status_of_current_exception() noexcept {
  try {
    throw;
  } catch (Failure& failure) {
    return {failure.error, std::move(failure.message)};
  } catch (const std::bad_alloc&) {
    return {Error::OutOfMemory, "out of memory"};
  } catch (const std::exception& error) {
    return {Error::Internal, error.what()};
  } catch (...) {
    return {Error::Internal, "unknown fault"};
  }
}

}  // namespace ebnet
