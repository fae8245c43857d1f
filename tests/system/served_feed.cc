#include "tests/system/served_feed.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

std::vector<std::string> Concatenate(std::vector<std::string> a,
                                     const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string ProgramOr(const char* variable, const char* built) {
  const char* other = std::getenv(variable);
  return other == nullptr ? built : other;
}

void RunOrAbort(const std::vector<std::string>& args) {
  const Finished finished = RunSystole(args);
  if (finished.exit_code != 0) {
    std::fprintf(stderr, "systole %s: exit code %d, signal %d\n%s", args[0].c_str(),
                 finished.exit_code, finished.signal, finished.err.c_str());
  }
  SYSTOLE_CHECK(finished.exit_code == 0);
}

}  // namespace

std::string SystoleProgram() { return ProgramOr("SYSTOLE_PROGRAM", SYSTOLE_PROGRAM); }
std::string ServerProgram() { return ProgramOr("SYSTOLE_SERVER_PROGRAM", SYSTOLE_SERVER_PROGRAM); }

Finished RunSystole(const std::vector<std::string>& args, const ProcessOptions& options) {
  return Process(Concatenate({SystoleProgram()}, args), options).Wait();
}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    const std::vector<std::string>& args, const ProcessOptions& options) {
  const TempFolder folder;
  const std::string port_file = folder / "port";
  std::unique_ptr<ServerProcess> server(new ServerProcess(
      Concatenate({ServerProgram(), "--listen", "127.0.0.1:0", "--port-file", port_file}, args),
      options));
  const bool serves = WaitUntil(
      [&] { return std::filesystem::exists(port_file) || !server->process_.IsRunning(); });
  if (!std::filesystem::exists(port_file)) {
    if (serves) return absl::UnavailableError(server->process_.Wait().err);
    return absl::DeadlineExceededError(
        absl::StrCat("the server wrote no port; it wrote:\n", server->process_.err()));
  }
  // The server renames the file into place, so a file that is seen is complete.
  const std::string text = ReadWholeFile(port_file);
  int port = 0;
  if (text.empty() || text.back() != '\n' ||
      !absl::SimpleAtoi(text.substr(0, text.size() - 1), &port)) {
    return absl::InternalError(absl::StrCat("the port file holds '", text, "'"));
  }
  server->address_ = absl::StrCat("127.0.0.1:", port);
  return server;
}

void PackFlowers(const TempFolder& folder, int images, int shards) {
  RunOrAbort({"make-flowers", folder / "images", "--images", absl::StrCat(images), "--seed", "1"});
  RunOrAbort({"pack", folder / "images", folder / "flowers", "--shards", absl::StrCat(shards),
              "--resize-short", "48"});
}

std::string RawShard(int first, int count, int record_bytes) {
  ShardBuilder shard;
  for (int record = first; record < first + count; ++record) {
    std::string payload(record_bytes, '\0');
    for (int i = 0; i < record_bytes; ++i)
      payload[i] = static_cast<char>(record * 31 + i * 7 + i / 251);
    shard.Add(payload);
  }
  return shard.Build();
}

std::string FlowersSpec(const std::string& extra) {
  return absl::StrCat(
      R"pb(
        dataset: "flowers"
        seed: 7
        epochs: 2
        shuffle { mode: GLOBAL }
        global_batch: 16
        num_cores: 8
        outputs {
          name: "image"
          feature: "image"
          transforms { decode_jpeg {} }
          transforms { random_resized_crop { height: 24 width: 32 } }
          transforms { random_flip {} }
          transforms { normalize { scale: 0.00392156862745098 mean: 0.5 stddev: 0.25 } }
          dtype: BFLOAT16
        }
        outputs { name: "label" feature: "label" dtype: INT64 }
        outputs { name: "id" feature: "record_id" dtype: INT64 }
      )pb",
      extra);
}

std::string RawSpec(int record_bytes, int epochs) {
  return absl::StrCat(R"pb(
                        dataset: "raw"
                        seed: 3
                        shuffle { mode: GLOBAL }
                        global_batch: 64
                        num_cores: 8
                        outputs { name: "bytes" feature: "record"
                                  transforms { decode_raw {} }
                                  dtype: UINT8
                                  shape:)pb",
                      record_bytes, " } epochs: ", epochs, "\n");
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

std::string TokenIn(const Finished& feed) {
  const size_t at = feed.err.rfind("--resume ");
  EXPECT_NE(at, std::string::npos) << feed.err;
  if (at == std::string::npos) return "";
  return feed.err.substr(at + 9, feed.err.find('\n', at) - at - 9);
}

std::string SortedByStepAndCore(const std::string& lines) {
  std::vector<std::pair<std::pair<int64_t, int64_t>, std::string>> keyed;
  for (const std::string& line : Lines(lines)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    int64_t step = 0;
    int64_t core = 0;
    SYSTOLE_CHECK(words.size() >= 3 && absl::SimpleAtoi(words[0], &step) &&
                  absl::SimpleAtoi(words[1], &core));
    keyed.push_back({{step, core}, line});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string sorted;
  for (const auto& [key, line] : keyed) absl::StrAppend(&sorted, line, "\n");
  return sorted;
}

}  // namespace systole
