// Reads the protobuf wire format in place. Accepts and refuses what protobuf's own C++ parser
// accepts and refuses, odd cases included. Tags and lengths have at most 5 bytes. Surplus bits are
// dropped in a tag, but are an error in a length. Varints have at most 10 bytes. Field number 0 is
// an error. Groups are skipped, with a bounded nesting.
//
// Thread-compatible. Borrows the bytes.
#ifndef SYSTOLE_CORE_EXAMPLE_WIRE_READER_H_
#define SYSTOLE_CORE_EXAMPLE_WIRE_READER_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// A field's tag has the field's number and one of these wire types.
constexpr uint32_t kWireVarint = 0;
constexpr uint32_t kWireFixed64 = 1;
constexpr uint32_t kWireBytes = 2;
constexpr uint32_t kWireStartGroup = 3;
constexpr uint32_t kWireEndGroup = 4;
constexpr uint32_t kWireFixed32 = 5;
constexpr uint32_t WireTag(uint32_t field, uint32_t wire_type) { return (field << 3) | wire_type; }

// The most messages and groups inside one another, as in protobuf. A deeper record may be an attack
// on the stack of a recursive reader.
constexpr int kMaxWireDepth = 100;

class WireReader {
 public:
  // `depth` is the number of messages around `bytes`: 0 for a whole record.
  explicit WireReader(absl::string_view bytes = {}, int depth = 0)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()), depth_(depth) {}

  bool done() const { return next_ == end_; }

  // Each of these reads one item and returns true, or returns false at malformed bytes. After
  // false, error() says what is wrong, position() says where, and nothing more may be read.
  bool ReadTag(uint32_t* tag);
  bool ReadVarint(uint64_t* value);
  bool ReadFixed32(uint32_t* value);
  bool ReadBytes(absl::string_view* bytes);  // A length, and that many bytes.
  bool SkipValue(uint32_t tag);              // The value of an unknown field.

  const char* error() const { return error_; }
  const char* position() const { return next_; }

 private:
  // Like ReadTag() and ReadBytes(), but for tags and lengths of any size, malformed ones too.
  bool ReadAnyTag(uint32_t* tag);
  bool ReadAnyBytes(absl::string_view* bytes);
  bool Fail(const char* error);
  bool Skip(uint64_t bytes);
  bool SkipGroup(uint32_t tag);
  bool SkipScalar(uint32_t tag);  // Anything but a group.

  const char* next_;
  const char* end_;
  const char* error_ = "";
  int depth_;
};

// Nearly every tag has one byte, and nearly every length has one or two bytes. These two functions
// read such tags and lengths without a further call.
inline bool WireReader::ReadTag(uint32_t* tag) {
  if (next_ != end_) {
    const uint32_t byte = static_cast<uint8_t>(*next_);
    if (byte >= WireTag(1, 0) && byte < 0x80) {
      ++next_;
      *tag = byte;
      return true;
    }
  }
  return ReadAnyTag(tag);
}

inline bool WireReader::ReadBytes(absl::string_view* bytes) {
  if (end_ - next_ >= 2) {
    const uint32_t low = static_cast<uint8_t>(next_[0]);
    const uint32_t high = static_cast<uint8_t>(next_[1]);
    const char* const begin = next_ + (low < 0x80 ? 1 : 2);
    const uint32_t size = low < 0x80 ? low : (low & 0x7f) | high << 7;
    if ((low < 0x80 || high < 0x80) && size <= end_ - begin) {
      *bytes = absl::string_view(begin, size);
      next_ = begin + size;
      return true;
    }
  }
  return ReadAnyBytes(bytes);
}

// How many varints `bytes` holds, or -1 if `bytes` ends inside a varint or a varint is longer than
// 10 bytes.
int64_t CountVarints(absl::string_view bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_WIRE_READER_H_
