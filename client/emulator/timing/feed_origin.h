// The feed that a run read: its spec, its servers and the date. The run's report and its recording
// contain these facts.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_FEED_ORIGIN_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_FEED_ORIGIN_H_

#include <cstdint>
#include <string>

namespace systole::emulator {

// Unknown fields are empty or 0. Texts are for people and have at most 64 KiB each.
struct FeedOrigin {
  std::string dataset;
  std::string spec;               // The file's name, without its folder.
  uint64_t spec_fingerprint = 0;  // FeedIdentity.spec_fingerprint, of the spec's canonical form.
  std::string servers;            // "a:8470, b:8470"
  std::string content_version;    // The content version of the servers.
  std::string date;               // When the run began: "2026-11-22T05:03:10Z".

  friend bool operator==(const FeedOrigin&, const FeedOrigin&) = default;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_FEED_ORIGIN_H_
