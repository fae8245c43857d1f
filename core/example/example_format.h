// The interface between a record's bytes and its named features. Each format of records, such as
// tf.train.Example, is an ExampleFormat. Code that reads features uses only this interface.
//
// Thread-safe: formats have no state. MadeText is thread-compatible.
#ifndef SYSTOLE_CORE_EXAMPLE_EXAMPLE_FORMAT_H_
#define SYSTOLE_CORE_EXAMPLE_EXAMPLE_FORMAT_H_

#include <forward_list>
#include <string>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/example/feature_view.h"

namespace systole {

// Names and values that a format has to make, because the record does not hold them in that form.
// For instance, a format for JSON makes a string without the escapes. The format bounds this text
// to a few MiB for a record, because each thread may hold the text of two records. A record may be
// joined from several records. Then the bound is for each of the joined records. An empty MadeText
// takes no memory.
class MadeText {
 public:
  // A copy that stays until Clear().
  absl::string_view Keep(std::string text) ABSL_ATTRIBUTE_LIFETIME_BOUND {
    return texts_.emplace_front(std::move(text));
  }
  void Clear() { texts_.clear(); }

 private:
  std::forward_list<std::string> texts_;
};

class ExampleFormat {
 public:
  virtual ~ExampleFormat() = default;

  // The name of a record of this format in messages: "tf.train.Example".
  virtual absl::string_view name() const = 0;

  // Calls `visit` with each feature of `record`, in the record's order. If a name comes twice,
  // visits both features, and the caller must use the later one. The views borrow `record` and
  // `made`. Reads each length only once, so bytes that change during the call do no harm. If the
  // record is damaged, returns DataLoss, which says what is wrong and where. Some features may have
  // been visited before the damage was found.
  virtual absl::Status Decode(absl::string_view record, MadeText& made,
                              absl::FunctionRef<void(const FeatureView&)> visit) const = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_EXAMPLE_FORMAT_H_
