#include "client/cli/pacing/feed_origin.h"

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/spec/order_spec.h"
#include "core/storage/byte_source.h"

namespace systole {

emulator::FeedOrigin OriginOf(absl::string_view spec_path, const v1::FeedSpec& spec,
                              const std::vector<std::string>& servers,
                              const v1::ResolveFeedResponse& answer) {
  return {.dataset = DatasetNames(spec),
          .spec = std::string(BaseName(spec_path)),
          .spec_fingerprint = answer.identity().spec_fingerprint(),
          .servers = absl::StrJoin(servers, ", "),
          .content_version = answer.identity().content_version(),
          .date = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone())};
}

}  // namespace systole
