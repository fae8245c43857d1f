// Inflates the filtered rows of a PNG file. The file's IDAT chunks hold the rows as one zlib
// stream. Any fault, such as a wrong checksum of a chunk, ends the inflation.
//
// Single-thread.
#ifndef SYSTOLE_CORE_IMAGE_PNG_IDAT_INFLATER_H_
#define SYSTOLE_CORE_IMAGE_PNG_IDAT_INFLATER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct inflate_state;  // ISA-L's.

namespace systole {

class IdatInflater {
 public:
  // REQUIRES: `png` begins with a signature and a header.
  explicit IdatInflater(absl::string_view png);
  ~IdatInflater();

  // Writes the next `bytes` bytes to `to`. Returns false if there is a fault or too few bytes are
  // left, and from then on always returns false. REQUIRES: bytes is 1 or more.
  bool Read(uint8_t* to, size_t bytes);

  // Whether Read() has returned the whole stream and its checksum is right. Call it last.
  bool AtEnd();

 private:
  // Inflates until the space for output is used up or the stream has ended. False: there is a
  // fault.
  bool Advance();
  // Gives ISA-L more of the chunks. False: there are no more, or there is a fault.
  bool NextInput();

  absl::string_view rest_;  // The file from the start of a chunk.
  std::string joined_;      // The data of several chunks.
  bool has_begun_ = false;
  bool is_good_ = true;
  std::unique_ptr<inflate_state> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_PNG_IDAT_INFLATER_H_
