// Compares our parser of Chunk messages with protobuf's. Both refuse, or both see the same fields
// and data and agree on the checksums. The first byte gives the size of the slices into which the
// message is cut. If that byte's highest bit is set, the message first gets a good header.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/checksum/crc32c.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "proto/framing/chunk.h"
#include "systole/v1/service.pb.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/proto/framing/sliced_message.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "differs from protobuf: %s\n", what);
  std::abort();
}

// Protobuf's parser skips groups, which proto3 does not have. Ours refuses them on purpose, so
// messages with a group are left out.
bool HasGroup(absl::string_view bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    uint64_t value = 0;
    uint32_t word = 0;
    switch (tag & 7) {
      case 0:
        if (!in.ReadVarint64(&value)) return false;
        break;
      case 1:
        if (!in.Skip(8)) return false;
        break;
      case 2:
        if (!in.ReadVarint32(&word) || !in.Skip(static_cast<int>(word))) return false;
        break;
      case 5:
        if (!in.Skip(4)) return false;
        break;
      default:
        return true;
    }
  }
  return false;
}

// A top-level field of the message.
struct Field {
  uint32_t tag = 0;
  size_t begin = 0;
  size_t end = 0;
};

// REQUIRES: protobuf accepted `bytes`, and they hold no group.
std::vector<Field> FieldsOf(absl::string_view bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  const auto position = [&in] { return static_cast<size_t>(in.CurrentPosition()); };
  std::vector<Field> fields;
  while (true) {
    Field field = {.begin = position()};
    field.tag = in.ReadTag();
    if (field.tag == 0) return fields;
    google::protobuf::internal::WireFormatLite::SkipField(&in, field.tag);
    field.end = position();
    fields.push_back(field);
  }
}

absl::Duration Bounded(int64_t nanoseconds) {
  return absl::Nanoseconds(std::clamp<int64_t>(nanoseconds, 0, 3'600'000'000'000));
}

constexpr uint32_t kHeaderCrcTag = 14 << 3 | 5;
constexpr uint32_t kDataTag = 15 << 3 | 2;

// Whether header_crc32c is right, by the rule in service.proto.
bool HeaderIsIntact(absl::string_view bytes, const systole::v1::Chunk& chunk) {
  std::vector<Field> fields = FieldsOf(bytes);
  if (!fields.empty() && fields.back().tag == kDataTag) fields.pop_back();
  if (fields.empty() || fields.back().tag != kHeaderCrcTag) return false;
  for (const Field& field : fields) {
    if (field.tag == kDataTag) return false;
  }
  return systole::Crc32c(bytes.substr(0, fields.back().begin)) == chunk.header_crc32c();
}

// The message `chunk` as protobuf writes it, without unknown fields, and with the right
// header_crc32c.
std::string WithIntactHeader(systole::v1::Chunk chunk) {
  chunk.DiscardUnknownFields();
  const std::string data = chunk.data();
  chunk.clear_data();
  chunk.clear_header_crc32c();
  chunk.set_header_crc32c(systole::Crc32c(chunk.SerializeAsString()));
  chunk.set_data(data);
  return chunk.SerializeAsString();
}

}  // namespace

SYSTOLE_FUZZER(chunk, const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  systole::v1::Chunk theirs;
  const bool accepted = theirs.ParseFromString(bytes);
  const bool mended = data[0] >= 0x80 && accepted;
  if (mended) bytes = WithIntactHeader(theirs);
  const absl::StatusOr<systole::ReceivedChunk> ours =
      systole::ReceivedChunk::Parse(systole::SlicedMessage(bytes, 1 + data[0] % 64));
  if (HasGroup(bytes)) return 0;
  Require(ours.ok() == accepted, accepted ? "we refuse it" : "we accept it");
  if (!accepted) return 0;
  const systole::ChunkHeader& header = ours->header();
  Require(header.step == theirs.step(), "step");
  Require(header.core == theirs.core(), "core");
  Require(header.tensor == theirs.tensor(), "tensor");
  Require(header.offset == theirs.offset(), "offset");
  Require(header.crc32c == theirs.crc32c(), "crc32c");
  Require(header.draining == theirs.draining(), "draining");
  Require(header.slot == theirs.slot(), "slot");
  Require(header.slot_bytes == theirs.slot_bytes(), "slot_bytes");
  Require(header.not_shared == theirs.not_shared(), "not_shared");
  Require(header.stages.has_value() == theirs.has_stages(), "stages");
  if (header.stages.has_value()) {
    const systole::v1::StageTimes& stages = theirs.stages();
    Require(header.stages->read == Bounded(stages.read_ns()), "read_ns");
    Require(header.stages->make == Bounded(stages.make_ns()), "make_ns");
    Require(header.stages->wait == Bounded(stages.wait_ns()), "wait_ns");
    Require(header.stages->costliest == std::max(stages.costliest_output(), 0) - 1, "output");
    Require(header.stages->operation == std::max(stages.costliest_operation(), 0) - 1, "operation");
  }
  const bool header_intact = ours->CheckHeader().ok();
  Require(header_intact == (mended || HeaderIsIntact(bytes, theirs)), "the header's verdict");
  Require(ours->data_bytes() == static_cast<int64_t>(theirs.data().size()), "length of data");
  std::vector<uint8_t> copied(theirs.data().size());
  const bool intact = ours->CopyTo(absl::MakeSpan(copied)).ok();
  Require(std::string(copied.begin(), copied.end()) == theirs.data(), "data");
  Require(intact == (systole::Crc32c(theirs.data()) == theirs.crc32c()), "the checksum's verdict");
  return 0;
}
