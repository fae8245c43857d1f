#include "core/example/wire_reader.h"

#include <cstring>

namespace systole {

bool WireReader::Fail(const char* error) {
  error_ = error;
  return false;
}

bool WireReader::ReadAnyTag(uint32_t* tag) {
  uint32_t value = 0;
  const char* p = next_;
  for (int shift = 0; shift < 35; shift += 7) {
    if (p == end_) return Fail("a field's tag is cut short");
    const uint32_t byte = static_cast<uint8_t>(*p++);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (value >> 3 == 0) return Fail("a field has number 0");
      next_ = p;
      *tag = value;
      return true;
    }
  }
  return Fail("a field's tag has more than 5 bytes");
}

bool WireReader::ReadVarint(uint64_t* value) {
  uint64_t result = 0;
  const char* p = next_;
  for (int shift = 0; shift < 70; shift += 7) {
    if (p == end_) return Fail("a varint is cut short");
    const uint64_t byte = static_cast<uint8_t>(*p++);
    result |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      next_ = p;
      *value = result;
      return true;
    }
  }
  return Fail("a varint has more than 10 bytes");
}

bool WireReader::ReadFixed32(uint32_t* value) {
  if (end_ - next_ < 4) return Fail("a 4-byte value is cut short");
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) result |= uint32_t{static_cast<uint8_t>(next_[i])} << (8 * i);
  *value = result;
  next_ += 4;
  return true;
}

bool WireReader::ReadAnyBytes(absl::string_view* bytes) {
  uint64_t size = 0;
  const char* p = next_;
  for (int shift = 0; shift < 35; shift += 7) {
    if (p == end_) return Fail("a length is cut short");
    const uint64_t byte = static_cast<uint8_t>(*p++);
    size |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      // Protobuf refuses such a length, too.
      if (size > 0x7fffffff) return Fail("a length is 2^31 or more");
      if (size > static_cast<uint64_t>(end_ - p))
        return Fail("a length exceeds the bytes around it");
      *bytes = absl::string_view(p, size);
      next_ = p + size;
      return true;
    }
  }
  return Fail("a length has more than 5 bytes");
}

bool WireReader::Skip(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(end_ - next_)) return Fail("a value is cut short");
  next_ += bytes;
  return true;
}

bool WireReader::SkipScalar(uint32_t tag) {
  uint64_t ignored = 0;
  absl::string_view ignored_bytes;
  switch (tag & 7) {
    case kWireVarint:
      return ReadVarint(&ignored);
    case kWireFixed64:
      return Skip(8);
    case kWireBytes:
      return ReadBytes(&ignored_bytes);
    case kWireFixed32:
      return Skip(4);
    case kWireEndGroup:
      return Fail("a group's end has no beginning");
    default:
      return Fail("a field has a wire type that does not exist");
  }
}

bool WireReader::SkipGroup(uint32_t tag) {
  // The tags of the open groups. With this array no function has to call itself.
  uint32_t open[kMaxWireDepth];
  int groups = 0;
  do {
    if ((tag & 7) == kWireStartGroup) {
      if (depth_ + groups >= kMaxWireDepth) return Fail("more than 100 messages and groups nest");
      open[groups++] = tag;
    } else if ((tag & 7) == kWireEndGroup) {
      if (tag >> 3 != open[groups - 1] >> 3) return Fail("a group ends with a wrong number");
      --groups;
    } else if (!SkipScalar(tag)) {
      return false;
    }
    if (groups > 0 && done()) return Fail("a group does not end");
  } while (groups > 0 && ReadTag(&tag));
  return groups == 0;
}

bool WireReader::SkipValue(uint32_t tag) {
  return (tag & 7) == kWireStartGroup ? SkipGroup(tag) : SkipScalar(tag);
}

int64_t CountVarints(absl::string_view bytes) {
  int64_t count = 0;
  int longer = 0;  // Bytes of the current varint so far.
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  while (p != end) {
    uint64_t eight;
    if (longer == 0 && end - p >= 8) {
      std::memcpy(&eight, p, 8);
      if ((eight & 0x8080808080808080u) == 0) {  // Eight values of one byte each.
        count += 8;
        p += 8;
        continue;
      }
    }
    if (static_cast<uint8_t>(*p++) < 0x80) {
      ++count;
      longer = 0;
    } else if (++longer == 10) {
      return -1;
    }
  }
  return longer == 0 ? count : -1;
}

}  // namespace systole
