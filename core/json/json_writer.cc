#include "core/json/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/check.h"
#include "core/text/utf8.h"

namespace systole {
namespace {

void AppendQuoted(absl::string_view value, std::string* out) {
  out->push_back('"');
  while (!value.empty()) {
    uint32_t code_point = 0;
    const size_t length = Utf8SequenceBytes(value, code_point);
    const char c = value[0];
    if (length == 0) {
      absl::StrAppend(out, "\\ufffd");
    } else if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      absl::StrAppend(out, "\\n");
    } else if (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      absl::StrAppend(out, value.substr(0, length));
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  out->push_back('"');
}

}  // namespace

void JsonWriter::Separate() {
  if (needs_comma_) text_.push_back(',');
  needs_comma_ = true;
}

JsonWriter& JsonWriter::Begin(char bracket) {
  Separate();
  text_.push_back(bracket);
  open_.push_back(bracket);
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::End(char bracket) {
  SYSTOLE_CHECK(!open_.empty() && open_.back() == (bracket == '}' ? '{' : '['));
  open_.pop_back();
  text_.push_back(bracket);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::BeginObject() { return Begin('{'); }
JsonWriter& JsonWriter::EndObject() { return End('}'); }
JsonWriter& JsonWriter::BeginArray() { return Begin('['); }
JsonWriter& JsonWriter::EndArray() { return End(']'); }

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  AppendQuoted(key, &text_);
  text_.push_back(':');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(absl::string_view value) {
  Separate();
  AppendQuoted(value, &text_);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  absl::StrAppend(&text_, value);
  return *this;
}

JsonWriter& JsonWriter::Uint(uint64_t value) {
  Separate();
  absl::StrAppend(&text_, value);
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  Separate();
  if (!std::isfinite(value)) {
    absl::StrAppend(&text_, "null");
    return *this;
  }
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  text_.append(digits, end.ptr);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  absl::StrAppend(&text_, value ? "true" : "false");
  return *this;
}

const std::string& JsonWriter::text() const {
  SYSTOLE_CHECK(open_.empty());
  return text_;
}

}  // namespace systole
