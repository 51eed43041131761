#include "engine/fields.h"

#include "engine/error.h"

namespace ebnet {

Fields::Fields(const json::Value& value, std::string where, std::initializer_list<std::string_view> known)
    : value_(value), where_(std::move(where)) {
  if (value.kind != json::Kind::Object) {
    fail(Error::FieldTypeWrong, where_ + ": expected a table, found " + json::kind_name(value.kind));
  }
  for (const std::string& key : value.keys) {
    bool found = false;
    for (const std::string_view name : known) found = found || name == key;
    if (!found) fail(Error::FieldUnknown, where_ + ": unknown field " + quoted(key));
  }
}

const json::Value& Fields::required(std::string_view key) const {
  const json::Value* found = value_.find(key);
  if (found == nullptr) fail(Error::FieldMissing, where_ + ": field '" + std::string(key) + "' is missing");
  return *found;
}

void Fields::wrong_type(std::string_view key, const json::Value& found, const char* expected) const {
  fail(Error::FieldTypeWrong,
       where_ + ": field '" + std::string(key) + "' is " + json::kind_name(found.kind) + ", expected " + expected);
}

int bounded_integer(const json::Value& value, int low, int high, const std::string& where) {
  if (value.kind != json::Kind::Number) {
    fail(Error::FieldTypeWrong, where + " is " + json::kind_name(value.kind) + ", expected a whole number");
  }
  if (!value.whole) fail(Error::FieldTypeWrong, where + " is not a whole number");
  if (value.number < low || value.number > high) {
    fail(Error::FieldOutOfRange, where + " is " + std::to_string(static_cast<long long>(value.number)) + ", expected " +
                                     std::to_string(low) + " to " + std::to_string(high));
  }
  return static_cast<int>(value.number);
}

int Fields::integer(std::string_view key, int low, int high) const {
  return bounded_integer(required(key), low, high, where_ + ": field '" + std::string(key) + "'");
}

int Fields::integer_or(std::string_view key, int low, int high, int fallback) const {
  return has(key) ? integer(key, low, high) : fallback;
}

bool Fields::boolean_or(std::string_view key, bool fallback) const {
  const json::Value* found = value_.find(key);
  if (found == nullptr) return fallback;
  if (found->kind != json::Kind::Bool) wrong_type(key, *found, "true or false");
  return found->boolean;
}

const std::string& Fields::text(std::string_view key) const {
  const json::Value& found = required(key);
  if (found.kind != json::Kind::String) wrong_type(key, found, "a string");
  return found.text;
}

int Fields::choice_or(std::string_view key, std::initializer_list<std::string_view> choices, int fallback) const {
  if (!has(key)) return fallback;
  const std::string& chosen = text(key);
  int index = 0;
  for (const std::string_view choice : choices) {
    if (choice == chosen) return index;
    ++index;
  }
  fail(Error::FieldChoiceUnknown, where_ + ": field '" + std::string(key) + "' is " + quoted(chosen));
}

const json::Value& Fields::list(std::string_view key) const {
  const json::Value& found = required(key);
  if (found.kind != json::Kind::Array) wrong_type(key, found, "a list");
  return found;
}

std::vector<double> Fields::numbers(std::string_view key) const {
  std::vector<double> values;
  for (const json::Value& item : list(key).items) {
    if (item.kind != json::Kind::Number) wrong_type(key, item, "a list of numbers");
    values.push_back(item.number);
  }
  return values;
}

}  // namespace ebnet
