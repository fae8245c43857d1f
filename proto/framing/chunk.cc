#include "proto/framing/chunk.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/batch/stage_times.h"
#include "core/checksum/crc32c.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "systole/v1/service.pb.h"

namespace systole {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// Wire types of protobuf's encoding (protobuf.dev/programming-guides/encoding).
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

constexpr uint32_t Tag(int field_number, WireType type) {
  return static_cast<uint32_t>(field_number) << 3 | type;
}

constexpr uint32_t kStep = Tag(v1::Chunk::kStepFieldNumber, kVarint);
constexpr uint32_t kCore = Tag(v1::Chunk::kCoreFieldNumber, kVarint);
constexpr uint32_t kTensor = Tag(v1::Chunk::kTensorFieldNumber, kVarint);
constexpr uint32_t kOffset = Tag(v1::Chunk::kOffsetFieldNumber, kVarint);
constexpr uint32_t kCrc32c = Tag(v1::Chunk::kCrc32CFieldNumber, kFixed32);
constexpr uint32_t kDraining = Tag(v1::Chunk::kDrainingFieldNumber, kVarint);
constexpr uint32_t kSlot = Tag(v1::Chunk::kSlotFieldNumber, kVarint);
constexpr uint32_t kSlotBytes = Tag(v1::Chunk::kSlotBytesFieldNumber, kVarint);
constexpr uint32_t kNotShared = Tag(v1::Chunk::kNotSharedFieldNumber, kVarint);
constexpr uint32_t kStages = Tag(v1::Chunk::kStagesFieldNumber, kLengthDelimited);
constexpr uint32_t kReadNs = Tag(v1::StageTimes::kReadNsFieldNumber, kVarint);
constexpr uint32_t kMakeNs = Tag(v1::StageTimes::kMakeNsFieldNumber, kVarint);
constexpr uint32_t kWaitNs = Tag(v1::StageTimes::kWaitNsFieldNumber, kVarint);
constexpr uint32_t kCostliestOutput = Tag(v1::StageTimes::kCostliestOutputFieldNumber, kVarint);
constexpr uint32_t kCostliestOperation =
    Tag(v1::StageTimes::kCostliestOperationFieldNumber, kVarint);
constexpr uint32_t kHeaderCrc32c = Tag(v1::Chunk::kHeaderCrc32CFieldNumber, kFixed32);
constexpr uint32_t kData = Tag(v1::Chunk::kDataFieldNumber, kLengthDelimited);

// At most 149 bytes are used: 11 for each of 8 varints, 45 for the stages, 5 for each of 2 CRCs,
// and 6 for the tag and size of `data`. Of the 45 bytes of the stages, 2 are for tag and size, 7
// for each of 3 times (an hour at most), and 11 at most for each of 2 indices (the output's and the
// operation's).
constexpr size_t kMaxHeaderBytes = 160;

class HeaderWriter {
 public:
  // Leaves out a field with the value 0, as protobuf does.
  void Varint(uint32_t tag, int64_t value) {
    if (value == 0) return;
    VarintAlways(tag, static_cast<uint64_t>(value));
  }
  void VarintAlways(uint32_t tag, uint64_t value) {
    end_ = CodedOutputStream::WriteTagToArray(tag, end_);
    end_ = CodedOutputStream::WriteVarint64ToArray(value, end_);
  }
  void Fixed32(uint32_t tag, uint32_t value) {
    if (value != 0) Fixed32Always(tag, value);
  }
  void Fixed32Always(uint32_t tag, uint32_t value) {
    end_ = CodedOutputStream::WriteTagToArray(tag, end_);
    end_ = CodedOutputStream::WriteLittleEndian32ToArray(value, end_);
  }
  void Message(uint32_t tag, const HeaderWriter& message) {
    const absl::string_view bytes = message.written();
    VarintAlways(tag, bytes.size());
    end_ = CodedOutputStream::WriteRawToArray(bytes.data(), static_cast<int>(bytes.size()), end_);
  }
  absl::string_view written() const {
    return absl::string_view(reinterpret_cast<const char*>(bytes_), size());
  }
  grpc::Slice ToSlice() const { return grpc::Slice(bytes_, size()); }

 private:
  size_t size() const { return static_cast<size_t>(end_ - bytes_); }

  uint8_t bytes_[kMaxHeaderBytes];
  uint8_t* end_ = bytes_;
};

int64_t NanosecondsOf(absl::Duration stage) {
  return absl::ToInt64Nanoseconds(BoundedStageTime(stage));
}

HeaderWriter StagesWriter(const StageTimes& stages) {
  HeaderWriter writer;
  writer.Varint(kReadNs, NanosecondsOf(stages.read));
  writer.Varint(kMakeNs, NanosecondsOf(stages.make));
  writer.Varint(kWaitNs, NanosecondsOf(stages.wait));
  writer.Varint(kCostliestOutput, int64_t{stages.costliest} + 1);
  writer.Varint(kCostliestOperation, int64_t{stages.operation} + 1);
  return writer;
}

void DropOwner(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

// Tags and lengths take at most five bytes. CodedInputStream would accept ten, but protobuf's
// parser refuses more than five.
constexpr int kMaxVarint32Bytes = 5;

bool ReadTag(CodedInputStream& in, uint32_t& tag) {
  const int begin = in.CurrentPosition();
  tag = in.ReadTag();
  return tag >> 3 != 0 && in.CurrentPosition() - begin <= kMaxVarint32Bytes;
}

bool ReadLength(CodedInputStream& in, int& length) {
  const int begin = in.CurrentPosition();
  return in.ReadVarintSizeAsInt(&length) && in.CurrentPosition() - begin <= kMaxVarint32Bytes;
}

template <typename Value>
bool ReadVarint(CodedInputStream& in, Value& value) {
  uint64_t read = 0;
  if (!in.ReadVarint64(&read)) return false;
  value = static_cast<Value>(read);
  return true;
}

bool SkipField(CodedInputStream& in, uint32_t wire_type) {
  uint64_t value = 0;
  int length = 0;
  switch (wire_type) {
    case kVarint:
      return in.ReadVarint64(&value);
    case kFixed64:
      return in.Skip(8);
    case kLengthDelimited:
      return ReadLength(in, length) && in.Skip(length);
    case kFixed32:
      return in.Skip(4);
    default:
      return false;  // Groups are refused, because proto3 has none.
  }
}

bool ReadStageTime(CodedInputStream& in, absl::Duration& time) {
  int64_t nanoseconds = 0;
  if (!ReadVarint(in, nanoseconds)) return false;
  time = BoundedStageTime(absl::Nanoseconds(nanoseconds));
  return true;
}

// Reads an index. On the wire it is the index plus 1. A number below 1 stands for no index, and
// sets `index` to -1.
bool ReadIndex(CodedInputStream& in, int& index) {
  int32_t number = 0;
  if (!ReadVarint(in, number)) return false;
  index = number > 0 ? number - 1 : -1;
  return true;
}

// Reads a StageTimes message. A damaged or foreign chunk may have several of them. As in protobuf,
// a later one changes only the fields that it has.
bool ReadStages(CodedInputStream& in, StageTimes& stages) {
  int length = 0;
  if (!ReadLength(in, length)) return false;
  const CodedInputStream::Limit limit = in.PushLimit(length);
  const int64_t end = int64_t{in.CurrentPosition()} + length;
  bool ok = true;
  while (ok && in.CurrentPosition() < end) {
    uint32_t tag = 0;
    ok = ReadTag(in, tag);
    if (!ok) break;
    switch (tag) {
      case kReadNs:
        ok = ReadStageTime(in, stages.read);
        break;
      case kMakeNs:
        ok = ReadStageTime(in, stages.make);
        break;
      case kWaitNs:
        ok = ReadStageTime(in, stages.wait);
        break;
      case kCostliestOutput:
        ok = ReadIndex(in, stages.costliest);
        break;
      case kCostliestOperation:
        ok = ReadIndex(in, stages.operation);
        break;
      default:
        ok = SkipField(in, tag & 7);
    }
  }
  in.PopLimit(limit);
  return ok && in.CurrentPosition() == end;
}

}  // namespace

grpc::ByteBuffer EncodeChunk(const ChunkHeader& header, absl::Span<const uint8_t> data,
                             std::shared_ptr<const void> owner) {
  HeaderWriter writer;
  writer.Varint(kStep, header.step);
  writer.Varint(kCore, header.core);
  writer.Varint(kTensor, header.tensor);
  writer.Varint(kOffset, header.offset);
  writer.Fixed32(kCrc32c, header.crc32c);
  writer.Varint(kDraining, header.draining ? 1 : 0);
  writer.Varint(kSlot, static_cast<int64_t>(header.slot));
  writer.Varint(kSlotBytes, header.slot_bytes);
  writer.Varint(kNotShared, header.not_shared);
  if (header.stages.has_value()) writer.Message(kStages, StagesWriter(*header.stages));
  writer.Fixed32Always(kHeaderCrc32c, Crc32c(writer.written()));
  if (data.empty()) {
    const grpc::Slice slice = writer.ToSlice();
    return grpc::ByteBuffer(&slice, 1);
  }
  writer.VarintAlways(kData, data.size());
  // grpc::Slice takes a mutable pointer, but does not write to the memory.
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
  // ProtoBufferReader takes a mutable buffer, but does not change the buffer.
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&message));
  CodedInputStream in(&reader);
  const auto message_bytes = static_cast<int64_t>(message.Length());
  ChunkHeader& header = chunk.header_;
  std::optional<int64_t>& guarded_bytes = chunk.guarded_bytes_;
  bool has_data = false;
  while (in.CurrentPosition() < message_bytes) {
    const int64_t field_begin = in.CurrentPosition();
    uint32_t tag = 0;
    bool ok = ReadTag(in, tag);
    if (tag != kData || has_data) guarded_bytes.reset();
    if (ok) {
      switch (tag) {
        case kStep:
          ok = ReadVarint(in, header.step);
          break;
        case kCore:
          ok = ReadVarint(in, header.core);
          break;
        case kTensor:
          ok = ReadVarint(in, header.tensor);
          break;
        case kOffset:
          ok = ReadVarint(in, header.offset);
          break;
        case kCrc32c:
          ok = in.ReadLittleEndian32(&header.crc32c);
          break;
        case kDraining:
          ok = ReadVarint(in, header.draining);
          break;
        case kSlot:
          ok = ReadVarint(in, header.slot);
          break;
        case kSlotBytes:
          ok = ReadVarint(in, header.slot_bytes);
          break;
        case kNotShared:
          ok = ReadVarint(in, header.not_shared);
          break;
        case kStages:
          if (!header.stages.has_value()) header.stages.emplace();
          ok = ReadStages(in, *header.stages);
          break;
        case kHeaderCrc32c:
          ok = in.ReadLittleEndian32(&chunk.header_crc32c_);
          if (!has_data) guarded_bytes = field_begin;
          break;
        case kData: {
          has_data = true;
          int length = 0;
          ok = ReadLength(in, length);
          if (ok) {
            chunk.data_begin_ = in.CurrentPosition();
            chunk.data_bytes_ = length;
            ok = in.Skip(length);
          }
          break;
        }
        default:
          ok = SkipField(in, tag & 7);
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
        "a chunk's header was damaged on the way: header_crc32c is not where it should be");
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
