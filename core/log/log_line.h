// One line of a log, a server's or a client's: a sentence for people and, beside it, what it is
// about as data. Text and JSON are two renderings of it.
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

// By level, as `--log-level` and JSON have them.
inline constexpr const char* kLogLevelNames[] = {"debug", "info", "warn", "error"};

// What makes a line. Each cause has its own allowance of lines.
enum class LogCause {
  kProgram,  // Start, datasets, end. No limit: peers cannot cause these.
  kIndex,    // What is odd about a shard's index.
  kDamage,
  kStreamOpened,
  kStreamEnded,
  kRefused,
  kNotShared,
  kConnections,  // Connections that are turned away.
  kGrpc,
  // In the log of a client.
  kServerLost,  // A server that gives no answer, broke off a stream or drains, and its return.
  kStepLate,
  kServerList,  // Servers that join or leave; a list that cannot be read.
};
inline constexpr size_t kNumLogCauses = 12;

// What a line is about, besides its sentence. What is not set is left out. May hold foreign text.
struct LogFields {
  std::optional<uint64_t> feed;  // The fingerprint of its spec.
  std::string client;            // A peer's address, or on a Unix socket its path or its user.
  std::string identity;
  std::string server;           // Its address, in a client's log.
  std::string dataset;          // Of a mixture the members, separated by commas.
  std::optional<int64_t> step;  // Of a server's stream: the first that it has not sent.
  std::string shard;            // Its base name.
  std::optional<int64_t> record;
};

struct LogLine {
  LogCause cause;
  LogLevel level;
  std::string text;
  LogFields fields = {};
  // If the line stands for others: how many.
  std::optional<int64_t> left_out = {};
};

// The line as text, without time and level: one line of bounded length, whatever is in it.
std::string TextOf(const LogLine& line);

// The same as one JSON object on one line:
//   {"time":"2026-01-31T23:59:59.123Z","level":"info","cause":"stream_opened","message":"..",
//    "feed":"0123456789abcdef","client":"ipv4:192.0.2.1:4711","identity":"trainer-a",
//    "server":"192.0.2.7:8470","dataset":"flowers","step":12,"shard":"a.tfrecord","record":7,"left_out":3}
// `message` is TextOf(). Time is UTC.
std::string JsonOf(const LogLine& line, absl::Time time);

// What the lines of this cause are about, in the plural, for the line that counts those left out.
absl::string_view PluralOf(LogCause cause);

}  // namespace systole

#endif  // SYSTOLE_CORE_LOG_LOG_LINE_H_
