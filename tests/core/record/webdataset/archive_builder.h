// Writes tar archives for tests, good and bad ones.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_RECORD_WEBDATASET_ARCHIVE_BUILDER_H_
#define SYSTOLE_TESTS_CORE_RECORD_WEBDATASET_ARCHIVE_BUILDER_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/record/webdataset/tar_entry.h"

namespace systole {

// The header of an entry, with its checksum.
inline std::string TarHeader(absl::string_view name, uint64_t size, char type = '0') {
  std::string block(kTarBlockBytes, '\0');
  block.replace(0, name.size(), name.data(), name.size());
  block.replace(100, 7, "0000444");
  block.replace(124, 11, absl::StrFormat("%011o", size));
  block[156] = type;
  block.replace(257, 8,
                std::string("ustar\0"
                            "00",
                            8));
  uint32_t sum = 8 * ' ';
  for (const char c : block) sum += static_cast<uint8_t>(c);
  block.replace(148, 8, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
  return block;
}

// Returns the header `block` with the checksum that its other bytes need.
inline std::string WithNewChecksum(std::string block) {
  block.replace(148, 8, 8, ' ');
  uint32_t sum = 0;
  for (const char c : block) sum += static_cast<uint8_t>(c);
  block.replace(148, 8, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
  return block;
}

inline std::string PaxRecord(absl::string_view key, absl::string_view value) {
  const std::string rest = absl::StrFormat(" %s=%s\n", key, value);
  size_t length = rest.size() + 1;
  while (absl::StrCat(length).size() + rest.size() != length) ++length;
  return absl::StrCat(length, rest);
}

class ArchiveBuilder {
 public:
  ArchiveBuilder& Add(absl::string_view name, absl::string_view content, char type = '0') {
    return AddRaw(TarHeader(name, content.size(), type)).AddContent(content);
  }
  // Adds a pax header with `records`, and then a file.
  ArchiveBuilder& AddPax(absl::string_view records, absl::string_view name,
                         absl::string_view content) {
    return Add("pax", records, 'x').Add(name, content);
  }
  ArchiveBuilder& AddContent(absl::string_view content) {
    bytes_.append(content.data(), content.size());
    bytes_.resize((bytes_.size() + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes);
    return *this;
  }
  ArchiveBuilder& AddRaw(absl::string_view bytes) {
    bytes_.append(bytes.data(), bytes.size());
    return *this;
  }

  // The archive without the two blocks of zeros that end it. Build() adds these.
  const std::string& bytes() const { return bytes_; }
  std::string Build() const { return bytes_ + std::string(2 * kTarBlockBytes, '\0'); }

 private:
  std::string bytes_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_WEBDATASET_ARCHIVE_BUILDER_H_
