#include "tests/chaos/chaos_feed.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// The first `count` lines of `text`, or the whole text if it has fewer lines.
std::string FirstLines(const std::string& text, int count) {
  size_t end = 0;
  for (; count > 0 && end < text.size(); --count) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

}  // namespace

double JsonNumber(const std::string& json, const std::string& name) {
  const std::string key = absl::StrCat("\"", name, "\":");
  const size_t at = json.find(key);
  double number = 0;
  EXPECT_TRUE(
      at != std::string::npos &&
      absl::SimpleAtod(json.substr(at + key.size(), json.find_first_of(",}", at) - at - key.size()),
                       &number))
      << json;
  return number;
}

std::string ChaosSpec(const std::string& name, int record_bytes) {
  return absl::StrCat(absl::StrReplaceAll(RawSpec(record_bytes, /*epochs=*/0),
                                          {{"\"raw\"", absl::StrCat("\"", name, "\"")}}),
                      "outputs { name: \"id\" feature: \"record_id\" dtype: INT64 }\n");
}

uint64_t ChaosSeed() {
  static const uint64_t seed = [] {
    uint64_t given = 0;
    const char* const text = std::getenv("SYSTOLE_CHAOS_SEED");
    if (text != nullptr && absl::SimpleAtoi(text, &given)) return given;
    return uint64_t{std::random_device()()};
  }();
  return seed;
}

int Times(int quick, int full) {
  const char* const amount = std::getenv("SYSTOLE_CHAOS");
  return amount != nullptr && std::string(amount) == "full" ? full : quick;
}

void ChaosTest::SetUp() {
  random_.seed(ChaosSeed());
  folder_.Write("raw-0.tfrecord", RawShard(0, kChaosRecords / 2, record_bytes_));
  folder_.Write("raw-1.tfrecord", RawShard(kChaosRecords / 2, kChaosRecords / 2, record_bytes_));
  spec_path_ = folder_.Write("spec.textproto", ChaosSpec("raw", record_bytes_));
}

void ChaosTest::TearDown() {
  if (HasFailure()) {
    ADD_FAILURE() << "repeat the test with SYSTOLE_CHAOS_SEED=" << ChaosSeed();
    for (const Place& place : places_) {
      if (place.server != nullptr) {
        ADD_FAILURE() << "server " << place.server->address() << " wrote:\n"
                      << place.server->process().err();
      }
    }
  }
}

void ChaosTest::AddServer(const std::vector<std::string>& args, const ProcessOptions& options) {
  Place place = {.args = args,
                 .options = options,
                 .proxy = std::make_unique<FaultProxy>(Draw(~uint64_t{0})),
                 .server = nullptr};
  places_.push_back(std::move(place));
  Restart(num_servers() - 1);
}

void ChaosTest::Restart(int i) {
  Place& place = places_[static_cast<size_t>(i)];
  place.server = nullptr;
  std::vector<std::string> args = {"--dataset", absl::StrCat("raw=", folder_ / "raw-*.tfrecord"),
                                   "--threads", "1"};
  args.insert(args.end(), place.args.begin(), place.args.end());
  absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(args, place.options);
  ASSERT_THAT(server, IsOk());
  place.server = *std::move(server);
  place.proxy->LeadTo(place.server->address());
}

void ChaosTest::Kill(int victims) {
  const int first = static_cast<int>(Draw(static_cast<uint64_t>(num_servers())));
  for (int i = 0; i < victims; ++i) server((first + i) % num_servers()).Signal(SIGKILL);
  absl::SleepFor(absl::Milliseconds(300));
  for (int i = 0; i < victims; ++i) Restart((first + i) % num_servers());
}

std::string ChaosTest::Servers() const {
  return absl::StrJoin(places_, ",", [](std::string* text, const Place& place) {
    absl::StrAppend(text, place.proxy->address());
  });
}

void ChaosTest::SetAll(const Faults& faults) {
  for (const Place& place : places_) place.proxy->Set(faults);
}

std::vector<std::string> ChaosTest::FeedArgs(int steps,
                                             const std::vector<std::string>& more) const {
  std::vector<std::string> args = {SystoleProgram(),   "feed",    "--server",
                                   Servers(),          "--spec",  spec_path_,
                                   "--digest=example", "--steps", absl::StrCat(steps)};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::unique_ptr<Process> ChaosTest::StartFeed(int steps, const std::vector<std::string>& more) {
  return std::make_unique<Process>(FeedArgs(steps, more));
}

std::unique_ptr<Process> ChaosTest::FeedInMidStream(int steps, std::string& printed,
                                                    const std::vector<std::string>& more) {
  auto feed =
      std::make_unique<Process>(FeedArgs(steps, more), ProcessOptions{.stdout_pipe_bytes = 4096});
  printed += feed->ReadLine();
  return feed;
}

void ChaosTest::ExpectUndisturbed(Process& feed, int steps, const std::string& printed) {
  const Finished finished = feed.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  ExpectUndisturbed(printed + finished.out, steps);
}

void ChaosTest::ExpectUndisturbed(const std::string& printed, int steps) {
  const std::string wanted = Undisturbed(steps);
  if (printed != wanted) {
    const auto [seen, other] =
        std::mismatch(printed.begin(), printed.end(), wanted.begin(), wanted.end());
    const auto line = [](const std::string& text, std::string::const_iterator at) {
      const size_t end = static_cast<size_t>(at - text.begin());
      const size_t begin = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;
      return begin >= text.size() ? "nothing" : text.substr(begin, text.find('\n', begin) - begin);
    };
    ADD_FAILURE() << "the feed printed '" << line(printed, seen)
                  << "' where the undisturbed run has '" << line(wanted, other) << "'";
  }
  ExpectEachRecordOnce(printed, steps);
}

std::string ChaosTest::Undisturbed(int steps) {
  // The lines depend only on the spec's seed and on the steps, so the longest run serves all tests.
  static std::string* const known = new std::string;
  static int known_steps = 0;
  if (steps > known_steps) {
    const absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--dataset", absl::StrCat("raw=", folder_ / "raw-*.tfrecord")});
    EXPECT_THAT(server, IsOk());
    if (!server.ok()) return "";
    const Finished finished =
        RunSystole({"feed", "--server", (*server)->address(), "--spec", spec_path_,
                    "--digest=example", "--steps", absl::StrCat(steps)});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(Lines(finished.out).size(), static_cast<size_t>(steps) * kChaosRecords);
    *known = finished.out;
    known_steps = steps;
  }
  return FirstLines(*known, steps * kChaosRecords);
}

void ChaosTest::ExpectEachRecordOnce(const std::string& printed, int steps) {
  // An example's digest identifies its record: the example contains the record's id, and nothing
  // random.
  static const std::map<std::string, std::string>* const ids = [&] {
    auto* const known = new std::map<std::string, std::string>;
    const absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--dataset", absl::StrCat("raw=", folder_ / "raw-*.tfrecord")});
    EXPECT_THAT(server, IsOk());
    if (!server.ok()) return known;
    // The values that `systole feed` prints for the examples of the first step, without step, core
    // and place.
    const auto first_step = [&](const std::string& what, int words_of_place) {
      std::vector<std::string> values;
      const Finished finished = RunSystole(
          {"feed", "--server", (*server)->address(), "--spec", spec_path_, "--steps", "1", what});
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
      for (const std::string& line : Lines(finished.out)) {
        const std::vector<std::string> words = absl::StrSplit(line, ' ');
        values.insert(values.end(), words.begin() + words_of_place, words.end());
      }
      EXPECT_EQ(values.size(), static_cast<size_t>(kChaosRecords));
      values.resize(kChaosRecords);
      return values;
    };
    const std::vector<std::string> digests = first_step("--digest=example", 3);
    const std::vector<std::string> record_ids = first_step("--print=id", 2);
    for (int i = 0; i < kChaosRecords; ++i) (*known)[digests[i]] = record_ids[i];
    EXPECT_EQ(known->size(), static_cast<size_t>(kChaosRecords));
    return known;
  }();
  std::map<std::pair<std::string, std::string>, int> times;  // How often each step has each record.
  for (const std::string& line : Lines(printed)) {
    const auto id = ids->find(line.substr(line.rfind(' ') + 1));
    if (id == ids->end()) {
      ADD_FAILURE() << "'" << line << "' has the digest of no record";
      return;
    }
    const int seen = ++times[{line.substr(0, line.find(' ')), id->second}];
    EXPECT_EQ(seen, 1) << "record " << id->second << " is in this step twice: " << line;
  }
  EXPECT_EQ(times.size(), static_cast<size_t>(steps) * kChaosRecords)
      << "some records are missing in an epoch";
}

}  // namespace systole
