// Writes one JSON value. It adds commas and escapes. The caller must match each Begin with its End.
// Otherwise a CHECK fails.
//   JsonWriter json;
//   json.BeginObject().Field("shards", 16).Key("files").BeginArray().String("a").EndArray();
//   json.EndObject();   // json.text() == {"shards":16,"files":["a"]}
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_JSON_JSON_WRITER_H_
#define SYSTOLE_CORE_JSON_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace systole {

class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(absl::string_view key);

  // Each byte that is not UTF-8 (in a damaged name or an odd path) becomes one U+FFFD.
  JsonWriter& String(absl::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  // The shortest text that reads back as the same number; null if `value` is not finite.
  JsonWriter& Double(double value);
  JsonWriter& Bool(bool value);

  JsonWriter& Field(absl::string_view key, absl::string_view value) {
    return Key(key).String(value);
  }
  JsonWriter& Field(absl::string_view key, const char* value) { return Key(key).String(value); }
  JsonWriter& Field(absl::string_view key, int value) { return Key(key).Int(value); }
  JsonWriter& Field(absl::string_view key, int64_t value) { return Key(key).Int(value); }
  JsonWriter& Field(absl::string_view key, uint64_t value) { return Key(key).Uint(value); }
  JsonWriter& Field(absl::string_view key, double value) { return Key(key).Double(value); }
  JsonWriter& Field(absl::string_view key, bool value) { return Key(key).Bool(value); }

  // REQUIRES: every Begin has had its End.
  const std::string& text() const;

 private:
  JsonWriter& Begin(char bracket);
  JsonWriter& End(char bracket);
  void Separate();

  std::string text_;
  std::vector<char> open_;  // The brackets that are open now.
  bool needs_comma_ = false;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_JSON_JSON_WRITER_H_
