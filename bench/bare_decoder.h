// A decoder that calls libjpeg-turbo as the manual of libjpeg-turbo shows. The decoder checks
// nothing, decodes no margin around the crop, and writes each row over the row before. So its speed
// is the ceiling for every program that decodes JPEGs with libjpeg.
//
// Single-thread.
#ifndef SYSTOLE_BENCH_BARE_DECODER_H_
#define SYSTOLE_BENCH_BARE_DECODER_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "core/image/window/crop.h"

namespace systole::bench {

class BareDecoder {
 public:
  BareDecoder();
  ~BareDecoder();
  BareDecoder(const BareDecoder&) = delete;
  BareDecoder& operator=(const BareDecoder&) = delete;

  // Decodes `crop`, which must lie within the image. Ends the program if `jpeg` is no JPEG.
  void Decode(absl::string_view jpeg, const CropRect& crop);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_BARE_DECODER_H_
