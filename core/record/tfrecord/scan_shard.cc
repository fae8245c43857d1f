#include "core/record/tfrecord/scan_shard.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/checksum/crc32c.h"
#include "core/record/source/content_hasher.h"
#include "core/record/source/read_window.h"
#include "core/record/tfrecord/record_format.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Reserve() makes room for at most this many records. That room takes 32 MiB. The limit exists
// because a shard may begin with small records that are not like the rest.
constexpr uint64_t kMostReserved = 4 << 20;

// PayloadHolds() reads a payload in pieces of this size.
constexpr uint64_t kPieceBytes = 256 << 10;

class Scanner {
 public:
  Scanner(const ByteSource& source, ReadWindow window, const ScanOptions& options)
      : source_(source),
        window_(std::move(window)),
        size_(window_.source_bytes()),
        verify_payloads_(options.verify_payloads),
        max_records_(options.max_records.value_or(size_)),
        unproven_bytes_(size_) {}

  absl::StatusOr<ScannedShard> Scan() {
    uint64_t offset = 0;
    bool reserved = false;
    while (offset < size_) {
      SYSTOLE_ASSIGN_OR_RETURN(const Header header, ReadHeader(offset));
      if (header.length.has_value()) {
        SYSTOLE_RETURN_IF_ERROR(TakeRecord(offset, *header.length));
        offset = TakeHeldRecords(offset + kRecordFramingBytes + *header.length);
        if (!std::exchange(reserved, true)) Reserve(offset);
      } else {
        SYSTOLE_ASSIGN_OR_RETURN(const uint64_t next, FindRecord(offset + 1));
        SYSTOLE_RETURN_IF_ERROR(TakeDamage(offset, next, header.cause));
        offset = next;
      }
      if (ends_.size() > max_records_) return TooManyRecords(source_.name(), max_records_);
    }
    // Shrinking copies all of ends_. So ends_ is shrunk only if the unused part is more than an
    // eighth of the used part.
    if (ends_.capacity() - ends_.size() > ends_.size() / 8) ends_.shrink_to_fit();
    return ScannedShard{.index = damage_.MoveInto(RecordIndex(std::move(ends_))),
                        .content_hash = hasher_.Digest()};
  }

 private:
  struct Header {
    std::optional<uint64_t> length;  // The length, if the payload ends within the shard.
    std::string cause;               // Why there is no length.
  };

  // Makes room for the likely number of records: the number if the rest of the shard is like its
  // first `seen_bytes` bytes. Growing step by step would copy ends_ again and again, into pages
  // that are new to the process.
  void Reserve(uint64_t seen_bytes) {
    ends_.reserve(std::min<uint64_t>(ends_.size() * (size_ / seen_bytes + 1), kMostReserved));
  }

  // Returns the `bytes` bytes at `offset`, where framing is expected.
  absl::StatusOr<const char*> Look(uint64_t offset, uint64_t bytes) {
    return verify_payloads_ ? window_.At(offset, bytes) : window_.Peek(offset, bytes);
  }

  absl::StatusOr<Header> ReadHeader(uint64_t offset) {
    const uint64_t left = size_ - offset;
    if (left < kRecordHeaderBytes) return Header{.length = {}, .cause = NoHeaderCause(left)};
    SYSTOLE_ASSIGN_OR_RETURN(const char* const header, Look(offset, kRecordHeaderBytes));
    const std::optional<uint64_t> length = DecodeRecordHeader(header);
    if (!length.has_value()) return Header{.length = {}, .cause = HeaderCrcCause(header)};
    if (left < kRecordFramingBytes || *length > left - kRecordFramingBytes) {
      return Header{.length = {}, .cause = TooLongCause(*length, left - kRecordHeaderBytes)};
    }
    return Header{.length = length, .cause = {}};
  }

  // Adds records to the index, from `offset` on, as long as they have a good header and are
  // completely in memory. Returns the offset of the first record that was not added. Nearly all
  // small records are added here, at a fraction of the cost of TakeRecord().
  uint64_t TakeHeldRecords(uint64_t offset) {
    absl::string_view held = window_.Held(offset);
    while (held.size() >= kRecordFramingBytes) {
      const std::optional<uint64_t> length = DecodeRecordHeader(held.data());
      if (!length.has_value() || *length > held.size() - kRecordFramingBytes) break;
      const absl::string_view payload = held.substr(kRecordHeaderBytes, *length);
      Enter(offset, *length,
            verify_payloads_ ? std::optional(PayloadFooter(payload)) : std::nullopt,
            LoadU32Le(payload.data() + payload.size()));
      offset += kRecordFramingBytes + *length;
      held.remove_prefix(kRecordFramingBytes + *length);
    }
    return offset;
  }

  // Adds to the index the record whose good header is at `offset`.
  absl::Status TakeRecord(uint64_t offset, uint64_t length) {
    uint64_t position = offset + kRecordHeaderBytes;
    uint32_t crc = 0;
    if (verify_payloads_) {
      while (position < offset + kRecordHeaderBytes + length) {
        SYSTOLE_ASSIGN_OR_RETURN(
            const absl::string_view piece,
            window_.Piece(position, offset + kRecordHeaderBytes + length - position));
        crc = ExtendCrc32c(crc, piece);
        position += piece.size();
      }
    } else {
      position += length;
    }
    // The next header is read along with this footer, so that large records cost one read each.
    SYSTOLE_ASSIGN_OR_RETURN(const char* const footer,
                             Look(position, std::min(kRecordFramingBytes, size_ - position)));
    Enter(offset, length, verify_payloads_ ? std::optional(MaskCrc32c(crc)) : std::nullopt,
          LoadU32Le(footer));
    return absl::OkStatus();
  }

  // Adds to the index a record with a good header. `computed_footer` is set only if the payload was
  // read.
  void Enter(uint64_t offset, uint64_t length, std::optional<uint32_t> computed_footer,
             uint32_t stored_footer) {
    if (computed_footer.value_or(stored_footer) != stored_footer) {
      damage_.Add(static_cast<int64_t>(ends_.size()),
                  {.offset = offset, .size = kRecordFramingBytes + length},
                  PayloadCrcCause(*computed_footer, stored_footer));
    }
    ends_.push_back(offset + kRecordFramingBytes + length);
    hasher_.Add(kRecordFramingBytes + length, stored_footer);
  }

  // Adds [begin, end) to the index as one damaged record.
  absl::Status TakeDamage(uint64_t begin, uint64_t end, std::string cause) {
    uint32_t stored = 0;
    if (end - begin >= kRecordFramingBytes) {
      SYSTOLE_ASSIGN_OR_RETURN(const char* const footer,
                               Look(end - kRecordFooterBytes, kRecordFooterBytes));
      stored = LoadU32Le(footer);
    }
    damage_.Add(static_cast<int64_t>(ends_.size()), {.offset = begin, .size = end - begin},
                std::move(cause));
    ends_.push_back(end);
    hasher_.Add(end - begin, stored);
    return absl::OkStatus();
  }

  // The first place from `offset` on where a record begins, or the shard's end if there is none.
  // A record is accepted only if the shard's end or a header follows it, or if its payload has the
  // stored CRC.
  absl::StatusOr<uint64_t> FindRecord(uint64_t offset) {
    for (; offset + kRecordFramingBytes <= size_; ++offset) {
      SYSTOLE_ASSIGN_OR_RETURN(const char* const header, window_.At(offset, kRecordHeaderBytes));
      // The bound is checked first, because one comparison excludes nearly every place.
      const uint64_t length = LoadU64Le(header);
      if (length > size_ - offset - kRecordFramingBytes) continue;
      if (!DecodeRecordHeader(header).has_value()) continue;
      SYSTOLE_ASSIGN_OR_RETURN(const bool chains,
                               IsEndOrHeader(offset + kRecordFramingBytes + length));
      if (chains) return offset;
      SYSTOLE_ASSIGN_OR_RETURN(const bool holds, PayloadHolds(offset, length));
      if (holds) return offset;
    }
    return size_;
  }

  // Whether the payload after the header at `offset` has the CRC that is stored after the payload.
  // If so, the record is good although damage follows. All these checks together read at most as
  // many bytes as the shard has. A payload that would exceed this limit is not read, and the result
  // is false. Without this limit, the time for a shard full of false headers would grow with the
  // square of the shard's size.
  absl::StatusOr<bool> PayloadHolds(uint64_t offset, uint64_t length) {
    if (length > unproven_bytes_) return false;
    unproven_bytes_ -= length;
    uint32_t crc = 0;
    // The payload is read without the window, because the search goes on at the window's place.
    std::string piece;
    for (uint64_t done = 0; done < length; done += piece.size()) {
      piece.resize(std::min<uint64_t>(kPieceBytes, length - done));
      SYSTOLE_RETURN_IF_ERROR(
          ReadExactlyAt(source_, offset + kRecordHeaderBytes + done, absl::MakeSpan(piece)));
      crc = ExtendCrc32c(crc, piece);
    }
    char footer[kRecordFooterBytes];
    SYSTOLE_RETURN_IF_ERROR(
        ReadExactlyAt(source_, offset + kRecordHeaderBytes + length, absl::MakeSpan(footer)));
    return MaskCrc32c(crc) == LoadU32Le(footer);
  }

  absl::StatusOr<bool> IsEndOrHeader(uint64_t offset) {
    if (offset == size_) return true;
    if (size_ - offset < kRecordHeaderBytes) return false;
    // The header is read without the window, because the search goes on at the window's place.
    char header[kRecordHeaderBytes];
    SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(source_, offset, absl::MakeSpan(header)));
    return DecodeRecordHeader(header).has_value();
  }

  const ByteSource& source_;
  ReadWindow window_;
  const uint64_t size_;
  const bool verify_payloads_;
  const uint64_t max_records_;
  uint64_t unproven_bytes_;  // How many bytes PayloadHolds() may still read.
  std::vector<uint64_t> ends_;
  DamageList damage_;
  ContentHasher hasher_;
};

}  // namespace

absl::StatusOr<ScannedShard> ScanShard(const ByteSource& source, const ScanOptions& options) {
  if (options.read_bytes < 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("ScanOptions.read_bytes is ", options.read_bytes, ", want >= 4096"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, source.Size());
  SYSTOLE_ASSIGN_OR_RETURN(ReadWindow window, ReadWindow::Create(source, size, options.read_bytes));
  return Scanner(source, std::move(window), options).Scan();
}

absl::StatusOr<ScannedShard> ScanIndexed(const ByteSource& source, RecordIndex index) {
  const uint64_t size = index.end();
  SYSTOLE_ASSIGN_OR_RETURN(ReadWindow window, ReadWindow::Create(source, size, 64 << 10));
  ContentHasher hasher;
  DamageList damage;
  // The header of the next record. It is read together with the footer of the record before.
  std::array<char, kRecordHeaderBytes> header;
  const auto keep_header = [&header](const char* bytes, uint64_t count) {
    std::copy(bytes, bytes + std::min(count, kRecordHeaderBytes), header.begin());
  };
  if (size > 0) {
    const uint64_t bytes = std::min(kRecordHeaderBytes, size);
    SYSTOLE_ASSIGN_OR_RETURN(const char* const look, window.Peek(0, bytes));
    keep_header(look, bytes);
  }
  for (int64_t i = 0; i < index.num_records(); ++i) {
    const RecordSpan span = index.span(i);
    const uint64_t end = span.offset + span.size;
    std::string cause = FramingCause(header.data(), span.size);
    if (!cause.empty()) damage.Add(i, span, std::move(cause));
    uint32_t stored = 0;
    const uint64_t footer_bytes = span.size >= kRecordFramingBytes ? kRecordFooterBytes : 0;
    const uint64_t bytes = footer_bytes + std::min(kRecordHeaderBytes, size - end);
    if (bytes > 0) {
      SYSTOLE_ASSIGN_OR_RETURN(const char* const look, window.Peek(end - footer_bytes, bytes));
      if (footer_bytes > 0) stored = LoadU32Le(look);
      keep_header(look + footer_bytes, bytes - footer_bytes);
    }
    hasher.Add(span.size, stored);
  }
  return ScannedShard{.index = damage.MoveInto(std::move(index)), .content_hash = hasher.Digest()};
}

}  // namespace systole
