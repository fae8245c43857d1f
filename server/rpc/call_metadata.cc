#include "server/rpc/call_metadata.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace systole {

std::optional<TraceContext> TraceContextOf(const CallMetadata& metadata) {
  const auto text = [](const grpc::string_ref& value) {
    return absl::string_view(value.data(), value.size());
  };
  const auto [first, last] = metadata.equal_range(kTraceParentKey);
  if (first == last || std::next(first) != last) return std::nullopt;
  std::optional<TraceContext> context = ParseTraceParent(text(first->second));
  if (!context.has_value()) return std::nullopt;
  std::string state;
  const auto [begin, end] = metadata.equal_range(kTraceStateKey);
  for (auto it = begin; it != end; ++it) {
    absl::StrAppend(&state, state.empty() ? "" : ",", text(it->second));
  }
  if (IsTraceState(state)) context->state = std::move(state);
  return context;
}

absl::Status ReadRequest(const CallMetadata& metadata, const grpc::ByteBuffer& bytes,
                         google::protobuf::MessageLite& request) {
  const absl::Status status = DecodeGuarded(bytes, metadata, request);
  if (!absl::IsDataLoss(status)) return status;
  // Not DATA_LOSS, which would mean a damaged record. If the request was damaged on the way,
  // another attempt may succeed.
  return absl::AbortedError(
      absl::StrCat("the request cannot be used: ", status.message(), "; send it again"));
}

}  // namespace systole
