#include "server/door/open_streams.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"

namespace systole {
namespace {

constexpr absl::Duration kBetweenLooksForNew = absl::Milliseconds(1);
constexpr absl::Duration kBetweenLooksForAll = absl::Seconds(1);
constexpr absl::string_view kSocketName = "\"name\":\"chttp2 ";
constexpr absl::string_view kSocketId = "\"socketId\":\"";
constexpr absl::string_view kServerId = "\"serverId\":\"";
constexpr absl::string_view kEnd = "\"end\":true";  // Of a list that comes in pages.

// What gRPC returned, which is JSON without spaces; empty for null.
std::string Taken(char* json) {
  const std::string text = json == nullptr ? "" : json;
  gpr_free(json);
  return text;
}

// The text between the next `key` in `json` and a quotation mark; `json` becomes what is behind
// it. Empty if there is none.
absl::string_view Next(absl::string_view& json, absl::string_view key) {
  const size_t at = json.find(key);
  json.remove_prefix(at == absl::string_view::npos ? json.size() : at + key.size());
  const absl::string_view text = json.substr(0, json.find('"'));
  json.remove_prefix(text.size());
  return text;
}

int64_t Number(absl::string_view digits) {
  int64_t number = 0;
  return absl::SimpleAtoi(digits, &number) ? number : 0;
}

int64_t NumberOf(absl::string_view json, absl::string_view key) { return Number(Next(json, key)); }

}  // namespace

OpenStreams::OpenStreams() {
  const std::string page = Taken(grpc_channelz_get_servers(0));
  absl::string_view rest = page;
  for (absl::string_view id = Next(rest, kServerId); !id.empty(); id = Next(rest, kServerId)) {
    servers_.push_back(static_cast<intptr_t>(Number(id)));
  }
}

StreamCounts OpenStreams::Of(const std::string& peer, absl::Duration now) {
  const auto socket = sockets_.find(peer);
  if (socket == sockets_.end()) return {};
  if (socket->second == 0 && now >= next_look_for_all_) {
    next_look_for_all_ = now + kBetweenLooksForAll;
    FindSockets(0);
  } else if (socket->second == 0 && now >= next_look_for_new_) {
    next_look_for_new_ = now + kBetweenLooksForNew;
    FindSockets(last_seen_ + 1);
  }
  if (socket->second == 0) return {};
  const std::string json = Taken(grpc_channelz_get_socket(socket->second));
  const int64_t opened = NumberOf(json, "\"streamsStarted\":\"");
  return {.opened = opened,
          .open = opened - NumberOf(json, "\"streamsSucceeded\":\"") -
                  NumberOf(json, "\"streamsFailed\":\"")};
}

void OpenStreams::FindSockets(intptr_t from) {
  for (const intptr_t server : servers_) {
    intptr_t next = from;
    for (bool more = true; more;) {
      more = false;
      const std::string page = Taken(grpc_channelz_get_server_sockets(server, next, /*max=*/0));
      absl::string_view rest = page;
      for (absl::string_view name = Next(rest, kSocketName); !name.empty();
           name = Next(rest, kSocketName)) {
        const auto id = static_cast<intptr_t>(Number(Next(rest, kSocketId)));
        const auto expected = sockets_.find(std::string(name));
        if (expected != sockets_.end()) expected->second = id;
        last_seen_ = std::max(last_seen_, id);
        next = id + 1;
        more = !absl::StrContains(page, kEnd);
      }
    }
  }
}

}  // namespace systole
