// Corrects the lengths and checksums in any bytes, so that the bytes are valid TFRecords. A fuzzer
// that changes payloads can thus reach the code that runs after the checks of lengths and
// checksums.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_FUZZ_RESEALED_RECORDS_H_
#define SYSTOLE_TESTS_FUZZ_RESEALED_RECORDS_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/record/tfrecord/record_format.h"

namespace systole {

inline std::string ResealedRecords(std::string bytes) {
  uint64_t at = 0;
  while (bytes.size() - at >= kRecordFramingBytes) {
    char* record = bytes.data() + at;
    const uint64_t length =
        std::min<uint64_t>(LoadU64Le(record), bytes.size() - at - kRecordFramingBytes);
    EncodeRecordHeader(length, record);
    const absl::string_view payload(record + kRecordHeaderBytes, length);
    StoreU32Le(PayloadFooter(payload), record + kRecordHeaderBytes + length);
    at += kRecordFramingBytes + length;
  }
  bytes.resize(at);
  return bytes;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_FUZZ_RESEALED_RECORDS_H_
