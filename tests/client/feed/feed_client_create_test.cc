// Tests which options, answers of servers and tokens a FeedClient accepts.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/feed/feed_client.h"
#include "core/log/event_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/framing/guarded_message.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(FeedClientCreateTest, TheCallerCanEndTheWaitForAServer) {
  FeedClientOptions options = Quick({DeadAddress()});
  int asked = 0;
  options.interrupted = [&asked] { return ++asked == 2; };
  EXPECT_THAT(FeedClient::Create(SpecOf(FakeFeed()), options),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("interrupted")));
  EXPECT_EQ(asked, 2);
}

TEST(FeedClientCreateTest, TimeoutErrorOfASpecWithWhereSuggestsALongerTimeout) {
  v1::FeedSpec spec = SpecOf(FakeFeed());
  FeedClientOptions options = Quick({DeadAddress()});
  options.connect_timeout = absl::Milliseconds(10);
  const std::string more = "a server may need longer to look up the records that meet `where`";
  EXPECT_THAT(FeedClient::Create(spec, options),
              StatusIs(absl::StatusCode::kUnavailable, Not(HasSubstr(more))));
  spec.add_select()->mutable_where()->set_feature("label");
  EXPECT_THAT(FeedClient::Create(spec, options),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(more), HasSubstr("raise connect_timeout"))));
}

TEST(FeedClientCreateTest, WithoutStartAtOnceNoStepIsRequestedBeforeNext) {
  const FakeFeed feed;
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.start_at_once = false;
  options.first_step = 3;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->next_step(), 3);
  EXPECT_EQ(client->stats().steps_received, 0);
  EXPECT_TRUE(server.requests().empty());
  ExpectAllSteps(Drain(*client), 3, 20);
}

TEST(FeedClientCreateTest, TheEndMayBeSetBeforeTheFirstNext) {
  const FakeFeed feed;
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.start_at_once = false;
  options.first_step = 3;
  for (const int64_t end : {3, 4, 20}) {
    const auto client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    client->EndBefore(end);
    EXPECT_EQ(client->end_step(), end);
    ExpectAllSteps(Drain(*client), 3, end);
  }
}

TEST(FeedClientCreateTest, AnOversizedSpecIsRefusedBeforeAnyServerIsAsked) {
  v1::FeedSpec spec = SpecOf(FakeFeed());
  spec.set_dataset(std::string(kMaxSpecBytes, 'd'));
  EXPECT_THAT(FeedClient::Create(spec, Quick({"127.0.0.1:1"})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bytes as a message, want at most 64512")));
}

TEST(FeedClientCreateTest, OptionsOutOfRangeAreRefusedBeforeAnyoneIsAsked) {
  const struct {
    const char* message;
    std::function<void(FeedClientOptions&)> change;
  } kCases[] = {
      {"servers has 0", [](FeedClientOptions& o) { o.servers.clear(); }},
      {"want HOST:PORT", [](FeedClientOptions& o) { o.servers = {"somewhere"}; }},
      {"want HOST:PORT", [](FeedClientOptions& o) { o.servers = {"somewhere:0"}; }},
      {"want HOST:PORT", [](FeedClientOptions& o) { o.servers = {"somewhere:65536"}; }},
      {"want HOST:PORT", [](FeedClientOptions& o) { o.servers = {":80"}; }},
      {"want HOST:PORT", [](FeedClientOptions& o) { o.servers = {"http://somewhere:80"}; }},
      {"want HOST:PORT", [](FeedClientOptions& o) { o.servers = {"one:80,two:80"}; }},
      {"unix:PATH", [](FeedClientOptions& o) { o.servers = {"unix:"}; }},
      {"first_step is -1", [](FeedClientOptions& o) { o.first_step = -1; }},
      {"steps is -2", [](FeedClientOptions& o) { o.steps = -2; }},
      {"epochs -3", [](FeedClientOptions& o) { o.epochs = -3; }},
      {"at most one above 0", [](FeedClientOptions& o) { o.steps = o.epochs = 1; }},
      {"cores 1:1", [](FeedClientOptions& o) { o.core_begin = o.core_end = 1; }},
      {"cores 0:3", [](FeedClientOptions& o) { o.core_end = 3; }},
      {"cores -1:1",
       [](FeedClientOptions& o) {
         o.core_begin = -1;
         o.core_end = 1;
       }},
      {"prefetch_bytes is -1", [](FeedClientOptions& o) { o.prefetch_bytes = -1; }},
      {"max_step_bytes is 0", [](FeedClientOptions& o) { o.max_step_bytes = 0; }},
      {"both allocate and free",
       [](FeedClientOptions& o) { o.memory.free = [](uint8_t*, int64_t) {}; }},
      {"retry_for is 0", [](FeedClientOptions& o) { o.retry_for = absl::ZeroDuration(); }},
      {"retry_for is inf", [](FeedClientOptions& o) { o.retry_for = absl::InfiniteDuration(); }},
  };
  for (const auto& test : kCases) {
    FeedClientOptions options = Quick({"127.0.0.1:1"});
    test.change(options);
    EXPECT_THAT(FeedClient::Create(SpecOf(FakeFeed()), options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.message)));
  }
}

TEST(FeedClientCreateTest, TheServersRefusalIsPassedOn) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound}) {
    const FakeFeed feed = {.resolve = [code](v1::ResolveFeedResponse&) {
      return absl::Status(code, "outputs[0].feature: no such thing");
    }};
    const FakeServer server(feed);
    EXPECT_THAT(FeedClient::Create(SpecOf(feed), Quick({server.address()})),
                StatusIs(code, HasSubstr("outputs[0].feature: no such thing")));
  }
}

// The status of Create() with a server whose answer to ResolveFeed was changed by `change`.
absl::Status CreateWith(std::function<void(v1::ResolveFeedResponse&)> change) {
  const FakeFeed feed = {.resolve = [change = std::move(change)](v1::ResolveFeedResponse& answer) {
    change(answer);
    return absl::OkStatus();
  }};
  const FakeServer server(feed);
  return FeedClient::Create(SpecOf(feed), Quick({server.address()})).status();
}

TEST(FeedClientCreateTest, AnInvalidFeedDescriptionIsRefused) {
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) { a.clear_tensors(); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("describes 0 tensors, want 3")));
  EXPECT_THAT(
      CreateWith([](v1::ResolveFeedResponse& a) { a.mutable_tensors(2)->set_shape(1, -1); }),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("dimension of -1")));
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) { a.mutable_tensors(2)->set_name("a"); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("tensor 2 is 'a', want 'x'")));
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) { a.set_total_steps(-1); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("total_steps is -1")));
  // A client that accepted this would end the training one step too early, without an error.
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) { a.set_total_steps(19); }),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("total_steps is 19 and steps_per_epoch 10, but by the spec 80 "
                                 "records make 20 and 10")));
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) { a.set_steps_per_epoch(5); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("steps_per_epoch 5")));
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) { a.clear_num_records(); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("fit no order")));
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) {
                for (v1::TensorDescription& tensor : *a.mutable_tensors()) {
                  tensor.set_shape(tensor.batch_axis(), 5);
                }
              }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("5 examples per core")));
}

TEST(FeedClientCreateTest, AFeedDescriptionWithTooLargeSlicesIsRefused) {
  // The slice has 40 GiB, which is valid for a SliceLayout, but more than max_step_bytes.
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) {
                a.mutable_tensors(2)->set_shape(1, int64_t{10} << 30);
                a.set_bytes_per_step(2 * ((int64_t{40} << 30) + 4 + 4 * 3 * 8));
              }),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_step_bytes")));
  // The slice has more bytes than an int64_t can count.
  EXPECT_THAT(CreateWith([](v1::ResolveFeedResponse& a) {
                a.mutable_tensors(2)->set_shape(1, int64_t{1} << 62);
              }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("larger than")));
}

TEST(FeedClientCreateTest, AFirstStepBehindTheEndIsRefused) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 20};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.first_step = 21;
  EXPECT_THAT(FeedClient::Create(SpecOf(feed), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("wanted is 21"), HasSubstr("has 20 steps"))));
}

// Runs a feed from two servers. `change` makes the second server differ from the first. Returns the
// status with which the feed ends.
absl::Status DrainTwo(std::function<void(FakeFeed&)> change, bool allow_mixed_content = false) {
  FakeFeed feed;
  const FakeServer a(feed);
  change(feed);
  const FakeServer b(feed);
  FeedClientOptions options = Quick({a.address(), b.address()});
  options.allow_mixed_content = allow_mixed_content;
  absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(SpecOf(feed), options);
  if (!client.ok()) return client.status();
  DrainedFeed drained = Drain(**client);
  EXPECT_EQ(drained.wrong, "");
  return drained.end;
}

TEST(FeedClientCreateTest, ServersThatDifferAreRefused) {
  EXPECT_THAT(DrainTwo([](FakeFeed& feed) { feed.dataset_fingerprint = 0xabc; }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("dataset 0000000000000abc"),
                             HasSubstr("dataset 000000000000000b"), HasSubstr("[server "))));
  EXPECT_THAT(DrainTwo([](FakeFeed& feed) { feed.order_fingerprint = 0xdef; }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("order 0000000000000def")));
  EXPECT_THAT(DrainTwo([](FakeFeed& feed) { feed.content_version = "fake-2"; }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'fake-1'"), HasSubstr("'fake-2'"))));
  EXPECT_THAT(DrainTwo([](FakeFeed& feed) { feed.example_bytes = 101; }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("different tensors")));
  EXPECT_THAT(DrainTwo([](FakeFeed& feed) { feed.steps_per_epoch = 9; }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("number of steps")));
}

TEST(FeedClientCreateTest, MixedContentIsAcceptedWhereAllowed) {
  EXPECT_THAT(DrainTwo([](FakeFeed& feed) { feed.content_version = "fake-2"; },
                       /*allow_mixed_content=*/true),
              IsOk());
  EXPECT_THAT(DrainTwo([](FakeFeed& feed) { feed.dataset_fingerprint = 0xabc; },
                       /*allow_mixed_content=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("abc")));
}

TEST(FeedClientCreateTest, AFeedResumesWhereItsTokenWasTaken) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 30};
  const FakeServer a(feed), b(feed);
  for (int taken = 0; taken <= 30; taken += 5) {
    std::string text;
    {
      const auto client = MustCreate(feed, Quick({a.address()}));
      ASSERT_NE(client, nullptr);
      for (int i = 0; i < taken; ++i) ASSERT_THAT(client->Next(), IsOk());
      EXPECT_EQ(client->Token().position.epoch, taken / 30);
      EXPECT_EQ(client->Token().position.examples, taken % 30 * SpecOf(feed).global_batch());
      text = client->Token().Encode();
    }
    const absl::StatusOr<ResumeToken> token = ResumeToken::Decode(text);
    ASSERT_THAT(token, IsOk());
    auto client = FeedClient::Resume(SpecOf(feed), *token, Quick({a.address(), b.address()}));
    ASSERT_THAT(client, IsOk());
    EXPECT_EQ((*client)->next_step(), taken);
    ExpectAllSteps(Drain(**client), taken, 30);
  }
}

TEST(FeedClientCreateTest, AnotherBatchSizeResumesAtTheSameExampleOrLogsTheSkip) {
  const FakeFeed eight = {.epochs = 1, .steps_per_epoch = 30};
  const FakeFeed sixteen = {.per_core_batch = 8, .epochs = 1, .steps_per_epoch = 15};
  const FakeServer before(eight), after(sixteen);
  ASSERT_EQ(SpecOf(eight).global_batch(), 8);
  ASSERT_EQ(SpecOf(sixteen).global_batch(), 16);
  for (int taken = 0; taken <= 30; ++taken) {
    ResumeToken token;
    {
      const auto client = MustCreate(eight, Quick({before.address()}));
      ASSERT_NE(client, nullptr);
      token = client->TokenAt(taken);
    }
    std::vector<std::string> lines;
    FeedClientOptions options = Quick({after.address()});
    options.start_at_once = false;
    options.log = std::make_shared<EventLog>([&lines](LogLevel level, const std::string& line) {
      EXPECT_EQ(level, LogLevel::kWarn);
      lines.push_back(line);
    });
    const auto client = FeedClient::Resume(SpecOf(sixteen), token, options);
    ASSERT_THAT(client, IsOk());
    EXPECT_EQ((*client)->next_step(), (taken + 1) / 2);
    EXPECT_EQ((*client)->stats().next_step, (taken + 1) / 2);
    if (taken % 2 == 0) {
      EXPECT_THAT(lines, IsEmpty());
    } else {
      EXPECT_THAT(lines, ElementsAre(AllOf(
                             HasSubstr("examples skipped: 8."),
                             HasSubstr(absl::StrCat("after ", taken * 8, " examples of epoch 0")),
                             HasSubstr(absl::StrCat("at step ", (taken + 1) / 2)))));
    }
    ExpectAllSteps(Drain(**client), (taken + 1) / 2, 15);
  }
}

TEST(FeedClientCreateTest, ATokenOfOtherDataIsRefused) {
  const FakeFeed feed;
  const FakeServer server(feed);
  const ResumeToken good = {.dataset_fingerprint = feed.dataset_fingerprint,
                            .order_fingerprint = feed.order_fingerprint,
                            .content_version = feed.content_version,
                            .position = {.epoch = 0, .examples = 32}};
  const auto resume = [&](const ResumeToken& token, bool allow_mixed_content = false) {
    FeedClientOptions options = Quick({server.address()});
    options.allow_mixed_content = allow_mixed_content;
    return FeedClient::Resume(SpecOf(feed), token, options).status();
  };
  EXPECT_THAT(resume(good), IsOk());
  ResumeToken token = good;
  token.dataset_fingerprint ^= 1;
  EXPECT_THAT(resume(token), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("dataset's fingerprint differs")));
  token = good;
  token.order_fingerprint ^= 1;
  EXPECT_THAT(resume(token), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("order's fingerprint differs")));
  token = good;
  token.content_version = "fake-0";
  EXPECT_THAT(resume(token), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      AllOf(HasSubstr("'fake-0'"), HasSubstr("'fake-1'"))));
  EXPECT_THAT(resume(token, /*allow_mixed_content=*/true), IsOk());
  token = good;
  token.position = {.epoch = 2, .examples = 8};
  EXPECT_THAT(resume(token),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 20 steps")));
  token.position = {.epoch = 0, .examples = 80};
  EXPECT_THAT(resume(token),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("feed of 80 records")));
}

}  // namespace
}  // namespace systole
