// Encodes protobuf messages by hand, for records that no writer makes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_EXAMPLE_ENCODE_H_
#define SYSTOLE_TESTS_CORE_EXAMPLE_ENCODE_H_

#include <cstdint>
#include <string>

namespace systole {

inline std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

// A field that holds bytes or a message.
inline std::string Field(uint32_t number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}

// An unpacked number.
inline std::string VarintField(uint32_t number, uint64_t value) {
  return Varint(number << 3) + Varint(value);
}
inline std::string Fixed32Field(uint32_t number, const std::string& four_bytes) {
  return Varint(number << 3 | 5) + four_bytes;
}

inline std::string Group(uint32_t number, const std::string& content) {
  return Varint(number << 3 | 3) + content + Varint(number << 3 | 4);
}

// The functions with "List" make a Feature. Entry() makes an entry of the map in Features, and
// Example() makes an Example of entries.
inline std::string BytesList(const std::string& list) { return Field(1, list); }
inline std::string FloatList(const std::string& list) { return Field(2, list); }
inline std::string Int64List(const std::string& list) { return Field(3, list); }
inline std::string Entry(const std::string& name, const std::string& feature) {
  return Field(1, Field(1, name) + Field(2, feature));
}
inline std::string Example(const std::string& entries) { return Field(1, entries); }

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_EXAMPLE_ENCODE_H_
