#include "core/record/webdataset/tar_entry.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Fields of a header.
constexpr size_t kNameBytes = 100;
constexpr size_t kSizeAt = 124;
constexpr size_t kChecksumAt = 148;
constexpr size_t kTypeAt = 156;
constexpr size_t kMagicAt = 257;
constexpr size_t kPrefixAt = 345;
constexpr size_t kNumberBytes = 12;  // The bytes of the size field.
constexpr size_t kChecksumBytes = 8;
constexpr size_t kPrefixBytes = 155;

constexpr absl::string_view kMagic = "ustar";  // A zero follows in POSIX, a blank in GNU.

// The field's text, up to the first zero.
absl::string_view Text(const char* field, size_t bytes) {
  const absl::string_view text(field, bytes);
  return text.substr(0, text.find('\0'));
}

// The number in a field. A field has octal digits, perhaps with blanks around them. If its first
// byte is 0x80, a number in base 256 follows instead (GNU). Nullopt: the field has no number, or
// the number does not fit in 64 bits.
std::optional<uint64_t> Number(const char* field, size_t bytes) {
  if (static_cast<uint8_t>(field[0]) == 0x80) {
    uint64_t number = 0;
    for (size_t i = 1; i < bytes; ++i) {
      if (number >> 56 != 0) return std::nullopt;
      number = number << 8 | static_cast<uint8_t>(field[i]);
    }
    return number;
  }
  absl::string_view digits = Text(field, bytes);
  while (absl::StartsWith(digits, " ")) digits.remove_prefix(1);
  while (absl::EndsWith(digits, " ")) digits.remove_suffix(1);
  uint64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '7') return std::nullopt;
    number = number << 3 | static_cast<uint64_t>(c - '0');  // Up to 12 digits fit.
  }
  return number;
}

// The sum of a header's bytes, with blanks in place of the checksum.
uint32_t SumOf(const char* block) {
  uint32_t sum = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) sum += static_cast<uint8_t>(block[i]);
  for (size_t i = 0; i < kChecksumBytes; ++i) sum -= static_cast<uint8_t>(block[kChecksumAt + i]);
  return sum + kChecksumBytes * ' ';
}

// The same sum over signed bytes, as old programs computed it.
int64_t SignedSumOf(const char* block) {
  int64_t sum = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) sum += static_cast<int8_t>(block[i]);
  for (size_t i = 0; i < kChecksumBytes; ++i) sum -= static_cast<int8_t>(block[kChecksumAt + i]);
  return sum + int64_t{kChecksumBytes} * ' ';
}

bool HasMagic(const char* block) {
  return absl::string_view(block + kMagicAt, kMagic.size()) == kMagic;
}

bool ChecksumHolds(const char* block, std::optional<uint64_t> stored) {
  return stored.has_value() &&
         (*stored == SumOf(block) || static_cast<int64_t>(*stored) == SignedSumOf(block));
}

// "" if `block` is a header, else what is wrong.
std::string HeaderCause(const char* block) {
  const std::optional<uint64_t> stored = Number(block + kChecksumAt, kChecksumBytes);
  if (ChecksumHolds(block, stored)) return "";
  return absl::StrCat("the sum of the tar header is ", SumOf(block), ", but its checksum is ",
                      stored.has_value() ? absl::StrCat(*stored) : "not a number");
}

uint64_t Padded(uint64_t bytes) {
  return (bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

// What the pax headers and long names before a file say about the file.
struct Meta {
  std::string name;  // Empty if they give no name.
  std::optional<uint64_t> size;
  bool sparse = false;
};

// Reads the records `<length> <key>=<value>\n` of a pax header. Returns what is wrong, or "".
std::string TakePax(absl::string_view records, Meta& meta) {
  while (!records.empty() && records.front() != '\0') {  // Python's tarfile stops at a zero, too.
    const char* const begin = records.data();
    uint64_t length = 0;
    const auto [stop, error] = std::from_chars(begin, begin + records.size(), length);
    const auto digits = static_cast<size_t>(stop - begin);
    if (error != std::errc() || digits + 2 > records.size() || *stop != ' ' ||
        length > records.size() || length < digits + 2 || begin[length - 1] != '\n') {
      return "a pax header holds a record that is not \"<length> <key>=<value>\\n\"";
    }
    const absl::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == absl::string_view::npos) return "a pax header holds a record without \"=\"";
    const absl::string_view key = record.substr(0, equals);
    const absl::string_view value = record.substr(equals + 1);
    if (key == "path") {
      meta.name = std::string(value);
    } else if (key == "size") {
      uint64_t size = 0;
      const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (bad != std::errc() || end != value.data() + value.size()) {
        return "a pax header holds a size that is not a number";
      }
      meta.size = size;
    } else if (absl::StartsWith(key, "GNU.sparse.")) {
      meta.sparse = true;
    }
  }
  return "";
}

std::string NameOf(const char* block) {
  const absl::string_view name = Text(block, kNameBytes);
  // GNU's format has times at the place of POSIX's prefix.
  const bool posix = HasMagic(block) && block[kMagicAt + kMagic.size()] == '\0';
  const absl::string_view prefix = posix ? Text(block + kPrefixAt, kPrefixBytes) : "";
  return prefix.empty() ? std::string(name) : absl::StrCat(prefix, "/", name);
}

// A damaged entry. The next entry begins at `end`.
TarEntry Damaged(std::string cause, uint64_t end) {
  TarEntry entry;
  entry.kind = TarEntry::Kind::kDamaged;
  entry.end = end;
  entry.cause = std::move(cause);
  return entry;
}

// A damaged entry. It is unknown where the next entry begins: at `end` or later.
TarEntry Lost(std::string cause, uint64_t end) {
  TarEntry entry = Damaged(std::move(cause), end);
  entry.is_lost = true;
  return entry;
}

bool IsZero(const char* block) {
  return std::all_of(block, block + kTarBlockBytes, [](char c) { return c == '\0'; });
}

}  // namespace

absl::StatusOr<TarEntry> ReadTarEntry(uint64_t offset, uint64_t archive_bytes, TarLook look) {
  Meta meta;
  for (int headers = 0;; ++headers) {
    if (headers > kMaxTarMetaHeaders) {
      return Damaged(absl::StrCat("more than ", kMaxTarMetaHeaders,
                                  " pax headers and long names before one file"),
                     offset);
    }
    const uint64_t left = archive_bytes - offset;
    if (left < kTarBlockBytes) {
      return Damaged(
          absl::StrCat("cut short: ", left, " bytes are left, a tar header has ", kTarBlockBytes),
          archive_bytes);
    }
    SYSTOLE_ASSIGN_OR_RETURN(const char* const block, look(offset, kTarBlockBytes));
    if (IsZero(block)) {
      if (headers > 0) return Damaged("zeros follow a pax header or a long name", offset);
      TarEntry entry;
      entry.kind = TarEntry::Kind::kEnd;
      entry.end = offset + kTarBlockBytes;
      return entry;
    }
    const uint64_t content = offset + kTarBlockBytes;
    if (std::string cause = HeaderCause(block); !cause.empty()) {
      return Lost(std::move(cause), content);
    }
    const char type = block[kTypeAt];
    const std::optional<uint64_t> stored = Number(block + kSizeAt, kNumberBytes);
    if (!stored.has_value()) return Lost("the size in the tar header is not a number", content);
    const bool is_meta = type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
    const uint64_t size = is_meta ? *stored : meta.size.value_or(*stored);
    // Links, devices, folders and pipes have no content, whatever their size says.
    const bool has_content = type < '1' || type > '6';
    if (has_content && size > archive_bytes - content) {
      return Lost(absl::StrCat("cut short, or its size is wrong: the tar header announces ", size,
                               " bytes, ", archive_bytes - content, " are left"),
                  content);
    }
    // The archive may end before the padding of a file's last block: tarfile accepts this, too.
    const uint64_t end =
        has_content ? content + std::min(Padded(size), archive_bytes - content) : content;
    if (is_meta) {
      if (size > kMaxTarMetaBytes) {
        return Damaged(absl::StrCat("a pax header or long name has ", size, " bytes, the limit is ",
                                    kMaxTarMetaBytes),
                       end);
      }
      if (type == 'x' || type == 'X' || type == 'L') {
        std::string cause;
        if (size > 0) {
          SYSTOLE_ASSIGN_OR_RETURN(const char* const bytes, look(content, size));
          if (type == 'L') {
            meta.name = std::string(Text(bytes, size));
          } else {
            cause = TakePax(absl::string_view(bytes, size), meta);
          }
        }
        if (!cause.empty()) return Damaged(std::move(cause), end);
        if (meta.name.size() > kMaxTarNameBytes) {
          return Damaged(absl::StrCat("a file's name has ", meta.name.size(),
                                      " bytes, the limit is ", kMaxTarNameBytes),
                         end);
        }
      }
      if (end >= archive_bytes) {
        return Damaged("cut short: a pax header or long name is at the archive's end", end);
      }
      offset = end;
      continue;
    }
    if (meta.sparse || type == 'S') {
      // After a header of type S, further headers may come before the content, so `end` is
      // uncertain.
      TarEntry entry = Damaged("a sparse file; make the archive again without sparse files", end);
      entry.is_lost = type == 'S';
      return entry;
    }
    TarEntry entry;
    entry.end = end;
    if (type != '0' && type != '\0' && type != '7') return entry;
    entry.name = meta.name.empty() ? NameOf(block) : std::move(meta.name);
    if (type == '\0' && absl::EndsWith(entry.name, "/"))
      return entry;  // A folder, in old archives.
    entry.kind = TarEntry::Kind::kFile;
    entry.content = content;
    entry.size = size;
    return entry;
  }
}

bool IsTarHeader(const char* block) {
  return HasMagic(block) && ChecksumHolds(block, Number(block + kChecksumAt, kChecksumBytes)) &&
         Number(block + kSizeAt, kNumberBytes).has_value();
}

bool BeginsAsTar(absl::string_view begin) {
  return begin.size() >= kTarBlockBytes && IsTarHeader(begin.data());
}

}  // namespace systole
