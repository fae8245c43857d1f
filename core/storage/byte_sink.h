// A place, such as a file or a string, to which bytes are written in order until it is closed.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_STORAGE_BYTE_SINK_H_
#define SYSTOLE_CORE_STORAGE_BYTE_SINK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  // Takes `bytes`. They may still be in a buffer when Append() returns. After an error every call
  // returns that error.
  virtual absl::Status Append(absl::string_view bytes) = 0;

  // Makes everything appended visible under the sink's name. The output is whole only after Close()
  // returns OK. FailedPrecondition if called twice.
  virtual absl::Status Close() = 0;

  // The name that messages show, such as the path of a file. Valid as long as the sink.
  virtual absl::string_view name() const = 0;

 protected:
  ByteSink() = default;
};

// Appends to a string, which must outlive the sink.
class StringSink final : public ByteSink {
 public:
  explicit StringSink(std::string* out) : out_(out) {}

  absl::Status Append(absl::string_view bytes) override {
    if (closed_) return ClosedAlready();
    out_->append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  absl::Status Close() override {
    if (closed_) return ClosedAlready();
    closed_ = true;
    return absl::OkStatus();
  }
  absl::string_view name() const override { return "string"; }

 private:
  static absl::Status ClosedAlready() {
    return absl::FailedPreconditionError("string sink is closed already");
  }

  std::string* const out_;
  bool closed_ = false;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BYTE_SINK_H_
