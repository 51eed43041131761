#include "engine/json.h"

#include <cmath>
#include <cstdlib>
#include <unordered_set>

#include "engine/error.h"

namespace ebnet::json {

namespace {

// Length of the valid UTF-8 sequence at `text[at]`, or 0 (overlong forms, surrogates and values past U+10FFFF are not).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80u) return 1;
  if (first >= 0xC2u && first <= 0xDFu) return follows(1) ? 2 : 0;
  if (first >= 0xE0u && first <= 0xEFu) {
    if (first == 0xE0u && byte(1) < 0xA0u) return 0;
    if (first == 0xEDu && byte(1) > 0x9Fu) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0u && first <= 0xF4u) {
    if (first == 0xF0u && byte(1) < 0x90u) return 0;
    if (first == 0xF4u && byte(1) > 0x8Fu) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80u) {
    out += static_cast<char>(code);
  } else if (code < 0x800u) {
    out += static_cast<char>(0xC0u | (code >> 6));
    out += static_cast<char>(0x80u | (code & 0x3Fu));
  } else if (code < 0x10000u) {
    out += static_cast<char>(0xE0u | (code >> 12));
    out += static_cast<char>(0x80u | ((code >> 6) & 0x3Fu));
    out += static_cast<char>(0x80u | (code & 0x3Fu));
  } else {
    out += static_cast<char>(0xF0u | (code >> 18));
    out += static_cast<char>(0x80u | ((code >> 12) & 0x3Fu));
    out += static_cast<char>(0x80u | ((code >> 6) & 0x3Fu));
    out += static_cast<char>(0x80u | (code & 0x3Fu));
  }
}

class Parser {
 public:
  Parser(std::string_view text, const char* where) : text_(text), where_(where) {}

  Value parse() {
    Value root;
    std::vector<Value*> open;  // the arrays and objects being filled, outermost first
    std::vector<std::unordered_set<std::string>> seen;
    Value* slot = &root;
    for (;;) {
      // `slot` is to be filled with the value that starts here.
      skip_space();
      count_value();
      const bool opened = start_value(*slot);
      if (opened) {
        if (open.size() == kMaxDepth) error(Error::JsonTooDeep, "nested too deeply");
        open.push_back(slot);
        seen.emplace_back();
      }
      bool first = opened;
      // Close what ends here, then find the next slot.
      for (;;) {
        skip_space();
        if (open.empty()) {
          if (at_ != text_.size()) error(Error::JsonSyntax, "text after the end");
          return root;
        }
        Value& container = *open.back();
        const char close = container.kind == Kind::Array ? ']' : '}';
        if (peek() == close) {
          ++at_;
          open.pop_back();
          seen.pop_back();
          first = false;
          continue;
        }
        if (!first) {
          expect(',');
          skip_space();
        }
        if (container.kind == Kind::Object) {
          std::string key = string();
          if (!seen.back().insert(key).second) error(Error::JsonDuplicateKey, "duplicate key " + quoted(key));
          container.keys.push_back(std::move(key));
          skip_space();
          expect(':');
        }
        // Growing `items` may move earlier siblings, none of which is open: only the last item ever is.
        container.items.emplace_back();
        slot = &container.items.back();
        break;
      }
    }
  }

 private:
  [[noreturn]] void error(Error code, const std::string& what) const {
    fail(code, std::string(where_) + ": " + what + " at byte " + std::to_string(at_));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  void expect(char c) {
    if (at_ >= text_.size() || text_[at_] != c) error(Error::JsonSyntax, std::string("expected '") + c + "'");
    ++at_;
  }

  void count_value() {
    if (++values_ > kMaxValues) error(Error::JsonTooManyValues, "more than " + std::to_string(kMaxValues) + " values");
  }

  void literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) error(Error::JsonSyntax, "expected a value");
    at_ += word.size();
  }

  // Reads a scalar, or the opening bracket of a container; true for the latter.
  bool start_value(Value& value) {
    switch (peek()) {
      case '{':
        ++at_;
        value.kind = Kind::Object;
        return true;
      case '[':
        ++at_;
        value.kind = Kind::Array;
        return true;
      case '"':
        value.kind = Kind::String;
        value.text = string();
        return false;
      case 't':
        literal("true");
        value.kind = Kind::Bool;
        value.boolean = true;
        return false;
      case 'f':
        literal("false");
        value.kind = Kind::Bool;
        return false;
      case 'n':
        literal("null");
        return false;
      default:
        number(value);
        return false;
    }
  }

  std::size_t digits() {
    const std::size_t from = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - from;
  }

  void number(Value& value) {
    const std::size_t from = at_;
    if (peek() == '-') ++at_;
    const bool leading_zero = peek() == '0';
    const std::size_t whole_digits = digits();
    if (whole_digits == 0) error(Error::JsonSyntax, "expected a value");
    if (leading_zero && whole_digits > 1) error(Error::JsonNumberInvalid, "number with a leading zero");
    bool whole = true;
    if (peek() == '.') {
      ++at_;
      whole = false;
      if (digits() == 0) error(Error::JsonNumberInvalid, "number without digits after the point");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      whole = false;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits() == 0) error(Error::JsonNumberInvalid, "number without digits in the exponent");
    }
    if (at_ - from > 64) error(Error::JsonNumberInvalid, "number of more than 64 characters");
    const std::string copy(text_.substr(from, at_ - from));
    value.kind = Kind::Number;
    value.number = std::strtod(copy.c_str(), nullptr);
    if (!std::isfinite(value.number)) error(Error::JsonNumberInvalid, "number too large");
    value.whole = whole && std::fabs(value.number) <= 9007199254740991.0;
  }

  unsigned hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = peek();
      unsigned digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<unsigned>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<unsigned>(c - 'a') + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<unsigned>(c - 'A') + 10;
      } else {
        error(Error::JsonSyntax, "bad \\u escape");
      }
      code = code * 16 + digit;
      ++at_;
    }
    return code;
  }

  void escape(std::string& out) {
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return;
      case 'b':
        out += '\b';
        return;
      case 'f':
        out += '\f';
        return;
      case 'n':
        out += '\n';
        return;
      case 'r':
        out += '\r';
        return;
      case 't':
        out += '\t';
        return;
      case 'u':
        break;
      default:
        error(Error::JsonSyntax, "bad escape");
    }
    unsigned code = hex4();
    if (code >= 0xDC00u && code <= 0xDFFFu) error(Error::JsonInvalidUtf8, "lone surrogate");
    if (code >= 0xD800u && code <= 0xDBFFu) {
      if (text_.substr(at_, 2) != "\\u") error(Error::JsonInvalidUtf8, "lone surrogate");
      at_ += 2;
      const unsigned low = hex4();
      if (low < 0xDC00u || low > 0xDFFFu) error(Error::JsonInvalidUtf8, "lone surrogate");
      code = 0x10000u + ((code - 0xD800u) << 10) + (low - 0xDC00u);
    }
    append_utf8(out, code);
  }

  std::string string() {
    if (peek() != '"') error(Error::JsonSyntax, "expected a string");
    ++at_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) error(Error::JsonSyntax, "string without end");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        ++at_;
        escape(out);
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20u) error(Error::JsonSyntax, "control character in a string");
      const std::size_t length = utf8_length(text_, at_);
      if (length == 0) error(Error::JsonInvalidUtf8, "invalid UTF-8");
      out.append(text_, at_, length);
      at_ += length;
    }
  }

  std::string_view text_;
  const char* where_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

const char* kind_name(Kind kind) {
  static constexpr const char* kNames[] = {"null", "true or false", "a number", "a string", "a list", "a table"};
  return kNames[static_cast<int>(kind)];
}

const Value* Value::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &items[i];
  }
  return nullptr;
}

Value parse(std::string_view text, const char* where) { return Parser(text, where).parse(); }

}  // namespace ebnet::json
