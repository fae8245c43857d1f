#include "proto/framing/chunk.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/checksum/crc32c.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Wire types of protobuf's encoding (protobuf.dev/programming-guides/encoding).
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// Field numbers of Chunk.
enum Field : uint32_t {
  kStep = 1,
  kCore = 2,
  kTensor = 3,
  kOffset = 4,
  kCrc32c = 5,
  kDraining = 6,
  kWaitedUs = 7,
  kSentUs = 8,
  kSlot = 9,
  kSlotBytes = 10,
  kNotShared = 11,
  kHeaderCrc32c = 14,
  kData = 15,
};

// Ten varints with their tags, at most 11 bytes each, two CRCs of 5, tag and length of data: 126.
constexpr size_t kMaxHeaderBytes = 128;

class HeaderWriter {
 public:
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_[size_++] = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    bytes_[size_++] = static_cast<uint8_t>(value);
  }
  void Tag(Field field, WireType type) { Varint(field << 3 | type); }
  // Like protobuf, leaves out a field with its default value.
  void VarintField(Field field, int64_t value) {
    if (value == 0) return;
    Tag(field, kVarint);
    Varint(static_cast<uint64_t>(value));
  }
  void Fixed32Field(Field field, uint32_t value) {
    if (value != 0) Fixed32(field, value);
  }
  // With the default value too.
  void Fixed32(Field field, uint32_t value) {
    Tag(field, kFixed32);
    for (int i = 0; i < 4; ++i) bytes_[size_++] = static_cast<uint8_t>(value >> (8 * i));
  }
  absl::string_view written() const {
    return absl::string_view(reinterpret_cast<const char*>(bytes_), size_);
  }
  grpc::Slice ToSlice() const { return grpc::Slice(bytes_, size_); }

 private:
  uint8_t bytes_[kMaxHeaderBytes];
  size_t size_ = 0;
};

void DropOwner(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

// Reads the concatenation of slices.
class SliceCursor {
 public:
  explicit SliceCursor(const std::vector<grpc::Slice>& slices) : slices_(slices) {
    for (const grpc::Slice& slice : slices) left_ += slice.size();
    SkipEmpty();
  }

  bool AtEnd() const { return left_ == 0; }
  int64_t position() const { return position_; }

  bool Byte(uint8_t& byte) {
    if (left_ == 0) return false;
    byte = slices_[slice_].begin()[at_];
    return Skip(1);
  }

  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      uint8_t byte = 0;
      if (!Byte(byte)) return false;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;  // More than ten bytes.
  }

  // At most five bytes. Like protobuf, drops what the fifth holds beyond 32 bits.
  bool Tag(uint32_t& tag) {
    tag = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      uint8_t byte = 0;
      if (!Byte(byte)) return false;
      tag |= static_cast<uint32_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  // The length of what follows, which must be there. At most five bytes: protobuf knows no more.
  bool Length(uint64_t& length) {
    const int64_t begin = position_;
    return Varint(length) && position_ - begin <= 5 && length <= left_;
  }

  bool Fixed32(uint32_t& value) {
    value = 0;
    for (int i = 0; i < 4; ++i) {
      uint8_t byte = 0;
      if (!Byte(byte)) return false;
      value |= static_cast<uint32_t>(byte) << (8 * i);
    }
    return true;
  }

  bool Skip(size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    position_ += static_cast<int64_t>(bytes);
    while (bytes > 0) {
      const size_t here = std::min(bytes, slices_[slice_].size() - at_);
      at_ += here;
      bytes -= here;
      SkipEmpty();
    }
    return true;
  }

 private:
  void SkipEmpty() {
    while (slice_ < slices_.size() && at_ == slices_[slice_].size()) {
      ++slice_;
      at_ = 0;
    }
  }

  const std::vector<grpc::Slice>& slices_;
  size_t slice_ = 0;
  size_t at_ = 0;  // In slices_[slice_].
  size_t left_ = 0;
  int64_t position_ = 0;
};

bool SkipField(SliceCursor& cursor, uint32_t wire_type) {
  uint64_t value = 0;
  switch (wire_type) {
    case kVarint:
      return cursor.Varint(value);
    case kFixed64:
      return cursor.Skip(8);
    case kLengthDelimited:
      return cursor.Length(value) && cursor.Skip(value);
    case kFixed32:
      return cursor.Skip(4);
    default:
      return false;  // Groups were never part of proto3.
  }
}

}  // namespace

grpc::ByteBuffer EncodeChunk(const ChunkHeader& header, absl::Span<const uint8_t> data,
                             std::shared_ptr<const void> owner) {
  HeaderWriter writer;
  writer.VarintField(kStep, header.step);
  writer.VarintField(kCore, header.core);
  writer.VarintField(kTensor, header.tensor);
  writer.VarintField(kOffset, header.offset);
  writer.Fixed32Field(kCrc32c, header.crc32c);
  writer.VarintField(kDraining, header.draining ? 1 : 0);
  writer.VarintField(kWaitedUs, header.waited_us);
  writer.VarintField(kSentUs, header.sent_us);
  writer.VarintField(kSlot, static_cast<int64_t>(header.slot));
  writer.VarintField(kSlotBytes, header.slot_bytes);
  writer.VarintField(kNotShared, header.not_shared);
  writer.Fixed32(kHeaderCrc32c, Crc32c(writer.written()));
  if (data.empty()) {
    const grpc::Slice slice = writer.ToSlice();
    return grpc::ByteBuffer(&slice, 1);
  }
  writer.Tag(kData, kLengthDelimited);
  writer.Varint(data.size());
  // gRPC's slice takes a mutable pointer but only reads.
  const grpc::Slice slices[] = {
      writer.ToSlice(), grpc::Slice(const_cast<uint8_t*>(data.data()), data.size(), DropOwner,
                                    new std::shared_ptr<const void>(std::move(owner)))};
  return grpc::ByteBuffer(slices, 2);
}

absl::StatusOr<ReceivedChunk> ReceivedChunk::Parse(const grpc::ByteBuffer& message) {
  ReceivedChunk chunk;
  if (!message.Dump(&chunk.slices_).ok()) {
    return absl::InvalidArgumentError("a chunk came without bytes");
  }
  SliceCursor cursor(chunk.slices_);
  ChunkHeader& header = chunk.header_;
  // Set while nothing but `data` has followed it.
  std::optional<int64_t>& guarded_bytes = chunk.guarded_bytes_;
  bool has_data = false;
  while (!cursor.AtEnd()) {
    const int64_t field_begin = cursor.position();
    uint32_t tag = 0;
    uint64_t value = 0;
    bool ok = cursor.Tag(tag) && tag >> 3 != 0;
    if (tag != (kData << 3 | kLengthDelimited) || has_data) guarded_bytes.reset();
    if (ok) {
      switch (tag) {
        case kStep << 3 | kVarint:
          ok = cursor.Varint(value);
          header.step = static_cast<int64_t>(value);
          break;
        case kCore << 3 | kVarint:
          ok = cursor.Varint(value);
          header.core = static_cast<int32_t>(value);
          break;
        case kTensor << 3 | kVarint:
          ok = cursor.Varint(value);
          header.tensor = static_cast<int32_t>(value);
          break;
        case kOffset << 3 | kVarint:
          ok = cursor.Varint(value);
          header.offset = static_cast<int64_t>(value);
          break;
        case kCrc32c << 3 | kFixed32:
          ok = cursor.Fixed32(header.crc32c);
          break;
        case kDraining << 3 | kVarint:
          ok = cursor.Varint(value);
          header.draining = value != 0;
          break;
        case kWaitedUs << 3 | kVarint:
          ok = cursor.Varint(value);
          header.waited_us = static_cast<int64_t>(value);
          break;
        case kSentUs << 3 | kVarint:
          ok = cursor.Varint(value);
          header.sent_us = static_cast<int64_t>(value);
          break;
        case kSlot << 3 | kVarint:
          ok = cursor.Varint(header.slot);
          break;
        case kSlotBytes << 3 | kVarint:
          ok = cursor.Varint(value);
          header.slot_bytes = static_cast<int64_t>(value);
          break;
        case kNotShared << 3 | kVarint:
          ok = cursor.Varint(value);
          header.not_shared = static_cast<int32_t>(value);
          break;
        case kHeaderCrc32c << 3 | kFixed32:
          ok = cursor.Fixed32(chunk.header_crc32c_);
          if (!has_data) guarded_bytes = field_begin;
          break;
        case kData << 3 | kLengthDelimited:
          has_data = true;
          ok = cursor.Length(value);
          if (ok) {
            chunk.data_begin_ = cursor.position();
            chunk.data_bytes_ = static_cast<int64_t>(value);
            ok = cursor.Skip(value);
          }
          break;
        default:
          ok = SkipField(cursor, tag & 7);
      }
    }
    if (!ok) {
      return absl::InvalidArgumentError(
          absl::StrCat("not a Chunk message: the field at byte ", field_begin,
                       " is malformed or cut short; is the other end a Systole server?"));
    }
  }
  return chunk;
}

absl::Status ReceivedChunk::CheckHeader() const {
  if (!guarded_bytes_.has_value()) {
    return absl::DataLossError(
        "a chunk's header was damaged on the way: header_crc32c is not where it should be; or is "
        "the server of an older version?");
  }
  uint32_t crc = 0;
  int64_t left = *guarded_bytes_;
  for (const grpc::Slice& slice : slices_) {
    const auto bytes = static_cast<size_t>(std::min(left, static_cast<int64_t>(slice.size())));
    crc = ExtendCrc32c(crc, absl::string_view(reinterpret_cast<const char*>(slice.begin()), bytes));
    left -= static_cast<int64_t>(bytes);
    if (left == 0) break;
  }
  if (crc != header_crc32c_) {
    return absl::DataLossError(
        absl::StrCat("a chunk's header was damaged on the way: its CRC-32C is ", crc,
                     ", the server sent ", header_crc32c_));
  }
  return absl::OkStatus();
}

absl::Status ReceivedChunk::ForEachPiece(
    absl::FunctionRef<void(absl::Span<const uint8_t>)> take) const {
  uint32_t crc = 0;
  int64_t slice_begin = 0;
  const int64_t data_end = data_begin_ + data_bytes_;
  for (const grpc::Slice& slice : slices_) {
    const int64_t slice_end = slice_begin + static_cast<int64_t>(slice.size());
    const int64_t begin = std::max(slice_begin, data_begin_);
    const int64_t end = std::min(slice_end, data_end);
    if (begin < end) {
      const uint8_t* const data = slice.begin() + (begin - slice_begin);
      const auto bytes = static_cast<size_t>(end - begin);
      take(absl::MakeConstSpan(data, bytes));
      crc = ExtendCrc32c(crc, absl::string_view(reinterpret_cast<const char*>(data), bytes));
    }
    slice_begin = slice_end;
  }
  if (crc != header_.crc32c) {
    return absl::DataLossError(absl::StrCat(
        "a chunk of step ", header_.step, ", core ", header_.core, ", tensor ", header_.tensor,
        ", offset ", header_.offset, " was damaged on the way: its CRC-32C is ", crc,
        ", the server sent ", header_.crc32c));
  }
  return absl::OkStatus();
}

absl::Status ReceivedChunk::CopyTo(absl::Span<uint8_t> destination) const {
  SYSTOLE_CHECK(static_cast<int64_t>(destination.size()) == data_bytes_);
  uint8_t* to = destination.data();
  return ForEachPiece([&to](absl::Span<const uint8_t> piece) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  });
}

}  // namespace systole
