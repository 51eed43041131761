#include "engine/text.h"

#include "engine/error.h"
#include "engine/fields.h"

namespace ebnet {

namespace {

constexpr std::size_t kMostSettings = 64, kLongestSetting = 256;

// The code point that starts at `at`, which is moved behind it.
unsigned next_code_point(const std::string& text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  unsigned point = first & (0x3Fu >> more);
  for (int i = 0; i < more && at < text.size(); ++i) point = point << 6 | (byte(at++) & 0x3Fu);
  return point;
}

bool is_plain(unsigned point) {
  const bool control = point < 0x20 || (point >= 0x7F && point < 0xA0);
  const bool separator = point == 0x2028 || point == 0x2029;
  const bool direction = point == 0x061C || point == 0x200E || point == 0x200F || (point >= 0x202A && point <= 0x202E) ||
                         (point >= 0x2066 && point <= 0x2069);
  return !control && !separator && !direction;
}

void require_setting(const json::Value& value, bool within_list, const std::string& where) {
  if (value.kind == json::Kind::String) require_plain(value.text, kLongestSetting, where);
  if (value.kind == json::Kind::Object || (within_list && value.kind == json::Kind::Array)) {
    fail(Error::FieldTypeWrong, where + " is " + json::kind_name(value.kind) + ", expected a single value or a list");
  }
  if (value.items.size() > kMostSettings) fail(Error::FieldOutOfRange, where + ": a list of too many values");
  for (const json::Value& item : value.items) require_setting(item, true, where);
}

}  // namespace

void require_plain(const std::string& text, std::size_t longest, const std::string& where) {
  if (text.size() > longest) {
    fail(Error::FieldOutOfRange,
         where + " has " + std::to_string(text.size()) + " bytes, at most " + std::to_string(longest));
  }
  for (std::size_t at = 0; at < text.size();) {
    if (!is_plain(next_code_point(text, at))) {
      fail(Error::TextUnprintable, where + ": " + quoted(text) + " holds a character that cannot be printed");
    }
  }
}

void require_settings(const json::Value& network, const Limits& limits) {
  if (network.kind != json::Kind::Object) fail(Error::FieldTypeWrong, "network: expected a table");
  if (network.items.size() > kMostSettings) fail(Error::FieldOutOfRange, "network: too many settings");
  for (std::size_t i = 0; i < network.items.size(); ++i) {
    require_plain(network.keys[i], kLongestSetting, "network: a setting's name");
    const std::string where = "network: setting " + quoted(network.keys[i]);
    require_setting(network.items[i], false, where);
    if (network.keys[i] == "experts") bounded_integer(network.items[i], 1, limits.experts, where);
    if (network.keys[i] == "arch" && network.items[i].kind != json::Kind::String) {
      fail(Error::FieldTypeWrong, where + ": expected a text");
    }
  }
}

}  // namespace ebnet
