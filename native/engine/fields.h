// Typed, bounded access to the fields of a JSON table; every fault names the table and the field.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/json.h"

namespace ebnet {

class Fields {
 public:
  // `value` must be a table with no keys but `known`.
  Fields(const json::Value& value, std::string where, std::initializer_list<std::string_view> known);

  bool has(std::string_view key) const { return value_.find(key) != nullptr; }
  int integer(std::string_view key, int low, int high) const;
  int integer_or(std::string_view key, int low, int high, int fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  const std::string& text(std::string_view key) const;
  // The position of the field's text in `choices`.
  int choice_or(std::string_view key, std::initializer_list<std::string_view> choices, int fallback) const;
  const json::Value& list(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

  // The field as it is; throws FieldMissing where it is not there.
  const json::Value& required(std::string_view key) const;
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] void wrong_type(std::string_view key, const json::Value& found, const char* expected) const;

  const json::Value& value_;
  std::string where_;
};

// A whole number of a list or field, within [low, high].
int bounded_integer(const json::Value& value, int low, int high, const std::string& where);

}  // namespace ebnet
