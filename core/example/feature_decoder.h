// Reads the features of one tf.train.Example in the order in which they are encoded, and checks all
// bytes that it reads or skips. Only tensorflow_example.cc uses this class.
//
// Thread-compatible. Borrows the record.
#ifndef SYSTOLE_CORE_EXAMPLE_FEATURE_DECODER_H_
#define SYSTOLE_CORE_EXAMPLE_FEATURE_DECODER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/example/feature_view.h"
#include "core/example/wire_reader.h"

namespace systole {

class FeatureDecoder {
 public:
  explicit FeatureDecoder(absl::string_view record) : record_(record) {}

  // Calls `visit` with each map entry. If a name comes twice, visits both entries, and the caller
  // must use the later one. Call Decode() once.
  //   DataLoss  the record is not an Example. The message names the byte that shows it. Some
  //             entries may have been visited before.
  absl::Status Decode(absl::FunctionRef<void(const FeatureView&)> visit);

 private:
  // Each of these sets bad_ and returns false if bytes are malformed.
  bool DecodeExample(absl::FunctionRef<void(const FeatureView&)> visit);
  bool DecodeFeatures(absl::string_view features,
                      absl::FunctionRef<void(const FeatureView&)> visit);
  bool DecodeEntry(absl::string_view entry, FeatureView* view);
  bool DecodeFeature(absl::string_view feature, FeatureView* view, int64_t* lists, int64_t* pieces);
  bool CountList(FeatureKind kind, absl::string_view list, int64_t* count);

  bool Fail(const WireReader& reader) { return Fail(reader.position(), reader.error()); }
  bool Fail(const char* position, const char* error);
  absl::Status Error() const;

  absl::string_view record_;
  const char* bad_position_ = nullptr;
  const char* bad_ = "";
};

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_FEATURE_DECODER_H_
