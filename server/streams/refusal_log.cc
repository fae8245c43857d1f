#include "server/streams/refusal_log.h"

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {

void RefusalLog::Add(const grpc::CallbackServerContext& context, const char* method,
                     const absl::Status& status, LogFields about) {
  refused_.Count(EndCauseOf(status));
  about.client = context.peer();
  events_.Add(
      LogCause::kRefused, LogLevel::kInfo,
      absl::StrCat(method, " for ", ForeignName(about.client),
                   about.trace.empty() ? "" : absl::StrCat(", trace ", about.trace),
                   " refused: ", absl::StatusCodeToString(status.code()), ": ", status.message()),
      about);
}

}  // namespace systole
