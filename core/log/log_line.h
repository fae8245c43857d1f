// One line of the log of a server or a client: a sentence for people, and fields for programs that
// say what the sentence is about. A line can be written as text or as JSON.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_LOG_LOG_LINE_H_
#define SYSTOLE_CORE_LOG_LOG_LINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace systole {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// The names of the levels, as `--log-level` and JSON have them.
inline constexpr const char* kLogLevelNames[] = {"debug", "info", "warn", "error"};

// Why a line is written. EventLog limits the number of lines of each cause.
enum class LogCause {
  kProgram,  // Start, datasets and end of the program. No limit, because peers cannot cause these.
  kIndex,    // Something odd about a shard's index.
  kDamage,
  kPlanned,  // What a feed fetches.
  kStreamOpened,
  kStreamEnded,
  kRefused,
  kNotShared,
  kConnections,  // Connections that are turned away.
  kGrpc,
  // In the log of a client.
  kServerLost,  // A server does not answer, broke off a stream, drains, or is back.
  kStepLate,
  kServerList,  // Servers join or leave, or a list of servers cannot be read.
  // In the log of a server.
  kSpans,  // A collector of traces does not take spans, or is back.
};
inline constexpr size_t kNumLogCauses = 14;

// The subject of a line. Fields that are not set are not written. A field may hold text from a peer
// or a file.
struct LogFields {
  std::optional<uint64_t> feed;  // The fingerprint of the feed's spec.
  std::string client;            // The peer's address; on a Unix socket, the path or the user.
  std::string identity;
  std::string server;           // The server's address, in a client's log.
  std::string dataset;          // For a mixture, all its datasets, separated by commas.
  std::optional<int64_t> step;  // For a server's stream, the first step that was not sent yet.
  std::string shard;            // The shard's base name.
  std::optional<int64_t> record;
  std::string trace;  // The id of the trace that the client's call belongs to, in hex.
};

struct LogLine {
  LogCause cause;
  LogLevel level;
  std::string text;
  LogFields fields = {};
  // If this line says how many lines were left out: their number.
  std::optional<int64_t> left_out = {};
};

// The line as text, without time and level: one line of bounded length, whatever it contains.
std::string TextOf(const LogLine& line);

// The line as one JSON object on one line:
//   {"time":"2026-01-31T23:59:59.123Z","level":"info","cause":"stream_opened","message":"..",
//    "feed":"0123456789abcdef","client":"ipv4:192.0.2.1:4711","identity":"trainer-a",
//    "server":"192.0.2.7:8470","dataset":"flowers","step":12,"shard":"a.tfrecord","record":7,
//    "trace":"4bf92f3577b34da6a3ce929d0e0e4736","left_out":3}
// `message` is TextOf(). Time is UTC.
std::string JsonOf(const LogLine& line, absl::Time time);

// The name of this cause's events in the plural, such as "late steps". A line that says how many
// lines were left out uses this name.
absl::string_view PluralOf(LogCause cause);

}  // namespace systole

#endif  // SYSTOLE_CORE_LOG_LOG_LINE_H_
