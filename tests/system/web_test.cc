// Tests the real programs with shards on a web server: `inspect`, `verify`, `index`, and a server.
#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Shard(int records) {
  ShardBuilder builder;
  for (int i = 0; i < records; ++i) {
    builder.Add(ExampleBuilder()
                    .AddBytes("raw", absl::StrCat("0123456789abcdef", 10 + i))
                    .AddInt64s("cls", {i})
                    .Serialize());
  }
  return builder.Build();
}

TEST(WebTest, AFeedFromTheWebHasTheBytesOfTheSameFeedFromFiles) {
  const TempFolder folder;
  StubObjects objects;
  const std::string shard = Shard(32);
  const auto server = ServerProcess::Start(
      {"--dataset", absl::StrCat("web=", objects.Put("/dir/a.tfrecord", shard)), "--dataset",
       absl::StrCat("files=", folder.Write("a.tfrecord", shard))});
  ASSERT_THAT(server, IsOk());
  std::string digests[2];
  for (const char* dataset : {"web", "files"}) {
    const std::string spec = folder.Write(
        "spec.textproto",
        absl::StrCat("dataset: '", dataset,
                     "' seed: 3 epochs: 1 shuffle { mode: GLOBAL } global_batch: 8 num_cores: 4 "
                     "outputs { name: 'raw' feature: 'raw' transforms { decode_raw {} } "
                     "  dtype: UINT8 shape: 18 } "
                     "outputs { name: 'label' feature: 'cls' dtype: INT64 }"));
    const Finished fed =
        RunSystole({"feed", "--server", (*server)->address(), "--spec", spec, "--digest"});
    EXPECT_EQ(fed.exit_code, 0) << fed.err;
    // Leaves out the line with --resume, because it contains the dataset's name in the spec.
    for (const std::string& line : Lines(fed.out)) {
      if (line.find("systole2:") == std::string::npos) {
        absl::StrAppend(&digests[dataset == std::string("web") ? 0 : 1], line, "\n");
      }
    }
  }
  EXPECT_EQ(Lines(digests[0]).size(), 4u * 4u);
  EXPECT_EQ(SortedByStepAndCore(digests[0]), SortedByStepAndCore(digests[1]));
}

TEST(WebTest, InspectAndVerifyReadAnObjectByItsAddress) {
  StubObjects objects;
  const std::string name = objects.Put("/dir/a.tfrecord", Shard(7)) + "?sig=secret";
  const Finished inspected = RunSystole({"inspect", name});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("7 records"), HasSubstr("cls")));
  EXPECT_EQ(RunSystole({"verify", name}).exit_code, 0);
}

TEST(WebTest, InspectNamesTheCauseIfAnAddressCannotBeRead) {
  StubObjects objects;
  const Finished missing = RunSystole({"inspect", objects.server().Url("/none.tfrecord?secret")});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("no such object"), Not(HasSubstr("secret"))));
  const Finished glob = RunSystole({"inspect", objects.server().Url("/a-*.tfrecord")});
  EXPECT_NE(glob.exit_code, 0);
  EXPECT_THAT(glob.err, HasSubstr("name each object"));
}

// Runs `systole ARGS..` and returns its exit code and its whole output.
std::string Said(const std::vector<std::string>& args) {
  const Finished finished = RunSystole(args);
  return absl::StrCat("exit code ", finished.exit_code, "\n", finished.out, finished.err);
}

TEST(WebTest, NoCommandShowsTheSecretsOfAnAddress) {
  const TempFolder folder;
  StubObjects objects;
  const std::string good = Shard(7);
  objects.Put("/dir/good.tfrecord", good);
  objects.Put("/dir/bad.tfrecord", WithFlippedBit(good, 8 * 20));    // In a payload.
  objects.Put("/dir/worse.tfrecord", WithFlippedBit(good, 8 * 3));   // In a header.
  objects.Put("/dir/none.tfrecord", std::string(5000, 'x'));         // No shard.
  objects.Put("/dir/packed.tfrecord", "\x1f\x8b\x08 no gzip file");  // No shard either.
  const std::string host = objects.server().Url("");                 // "http://127.0.0.1:PORT".
  for (const std::string path : {"/dir/good.tfrecord", "/dir/bad.tfrecord", "/dir/worse.tfrecord",
                                 "/dir/none.tfrecord", "/dir/packed.tfrecord", "/dir/missing"}) {
    const std::string name = absl::StrCat(host, path, "?sig=SECRET");
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{"inspect", name},
          {"inspect", name, "--json"},
          {"inspect", name, "--record", "0"},
          {"inspect", name, "--record", "0", "--json"},
          {"verify", name},
          {"verify", name, "--json"},
          {"index", name},
          {"index", name, "--index-dir", folder.path()},
          {"index", name, "--index-dir", folder.path(), "--json"}}) {
      const std::string said = Said(args);
      EXPECT_THAT(said, Not(HasSubstr("SECRET"))) << args[0] << " " << path;
      // `verify` names only damaged shards.
      if (args[0] == "verify") continue;
      EXPECT_THAT(said, HasSubstr(path.substr(path.rfind('/') + 1))) << args[0] << " " << path;
    }
  }
  for (const std::string& name :
       {absl::StrReplaceAll(host, {{"://", "://user:SECRET@"}}) + "/dir/good.tfrecord",
        absl::StrReplaceAll(host, {{"http:", "HTTP:"}}) + "/dir/good.tfrecord?SECRET",
        absl::StrReplaceAll(host, {{"://", "://user:SECRET/x@"}}) + "/dir/good.tfrecord",
        absl::StrReplaceAll(host, {{"://", ":/user:SECRET@"}}) + "/dir/good.tfrecord?SECRET"}) {
    for (const char* command : {"inspect", "verify", "index"}) {
      EXPECT_THAT(Said({command, name}), Not(HasSubstr("SECRET"))) << command;
    }
    EXPECT_THAT(Said({"datasets", "--server", name}), Not(HasSubstr("SECRET")));
  }
}

TEST(WebTest, NoServerShowsTheSecretsOfAnAddress) {
  StubObjects objects;
  const std::string good = Shard(7);
  const auto dataset = [&](const std::string& name, const std::string& bytes) {
    return absl::StrCat(name, "=", objects.Put(absl::StrCat("/dir/", name), bytes), "?sig=SECRET");
  };
  // The server cannot write an index to a web server, and says so in its log when it starts.
  const auto server = ServerProcess::Start(
      {"--dataset", dataset("good", good), "--dataset", dataset("bad", WithFlippedBit(good, 3)),
       "--dataset", dataset("none", std::string(5000, 'x')), "--dataset",
       absl::StrCat("missing=", objects.server().Url("/dir/missing?sig=SECRET")), "--dataset",
       absl::StrCat("glob=", objects.server().Url("/dir/*?sig=SECRET"))});
  ASSERT_THAT(server, IsOk());
  for (const char* command : {"datasets", "status"}) {
    for (const bool json : {false, true}) {
      std::vector<std::string> args = {command, "--server", (*server)->address()};
      if (json) args.push_back("--json");
      EXPECT_THAT(Said(args), Not(HasSubstr("SECRET"))) << command;
    }
  }
  (*server)->process().Signal(SIGTERM);
  EXPECT_THAT((*server)->process().Wait().err,
              AllOf(HasSubstr("/dir/good: index not kept"), HasSubstr("'none' is not served"),
                    HasSubstr("(--dataset none="), HasSubstr("'missing' is not served"),
                    HasSubstr("'glob' is not served"), Not(HasSubstr("SECRET"))));
  // A server that has nothing to serve ends with this error.
  EXPECT_THAT(ServerProcess::Start({"--dataset", dataset("none", std::string(5000, 'x'))}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("holds no record"), Not(HasSubstr("SECRET")))));
}

// The server of the shards hangs, so a program would retry its reads for a long time. Ctrl-C must
// end the program earlier.
TEST(WebTest, CtrlCEndsProgramsThatWaitForAServerOfShards) {
  StubObjects objects;
  objects.SetFault([](const StubRequest&) { return StubAnswer{.bytes = "", .hangs = true}; });
  const std::string name = objects.Put("/a.tfrecord", Shard(7));
  for (const char* command : {"index", "inspect", "verify"}) {
    const size_t before = objects.server().requests().size();
    Process process({SystoleProgram(), command, name});
    ASSERT_TRUE(WaitUntil([&] { return objects.server().requests().size() > before; }));
    process.Signal(SIGINT);
    const Finished finished = process.Wait();
    EXPECT_EQ(finished.exit_code, 128 + SIGINT) << command;
    EXPECT_THAT(finished.err, AllOf(StartsWith("systole"), HasSubstr(": interrupted")));
  }
  const size_t before = objects.server().requests().size();
  Process server({ServerProgram(), "--listen", "127.0.0.1:0", "--dataset", "a=" + name});
  ASSERT_TRUE(WaitUntil([&] { return objects.server().requests().size() > before; }));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait().signal, SIGTERM);
}

}  // namespace
}  // namespace systole
