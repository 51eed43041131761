// A strict JSON reader (RFC 8259) for hostile input: bounded depth, bounded number of values, no duplicate keys,
// valid UTF-8 only, one stack frame whatever the nesting.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ebnet::json {

inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxValues = std::size_t{1} << 17;

enum class Kind : std::uint8_t { Null, Bool, Number, String, Array, Object };

const char* kind_name(Kind kind);

struct Value {
  Kind kind = Kind::Null;
  bool boolean = false;
  bool whole = false;  // the number was written without fraction and exponent and fits 53 bits
  double number = 0.0;
  std::string text;               // String
  std::vector<std::string> keys;  // Object: keys[i] names items[i]
  std::vector<Value> items;       // Array and Object

  const Value* find(std::string_view key) const;
};

// Throws Failure (Json... errors); `where` names the text in messages.
Value parse(std::string_view text, const char* where);

}  // namespace ebnet::json
