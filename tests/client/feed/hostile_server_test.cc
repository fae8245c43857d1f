// A server puts values that no honest server would send into every field of every answer. The
// client must neither crash nor hang, and no such value may reach a terminal unescaped.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "client/servers/server_status.h"
#include "core/checksum/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/client/feed/flooding_server.h"
#include "tests/client/feed/hostile_values.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::HasSubstr;

// Options of a client that gives up soon and allocates little.
FeedClientOptions Wary(const FakeServer& server) {
  FeedClientOptions options = Quick({server.address()});
  options.connect_timeout = options.retry_for = absl::Milliseconds(300);
  options.max_step_bytes = 1 << 20;
  options.prefetch_bytes = 1 << 20;
  return options;
}

struct Taking {
  bool any_bytes = false;  // Bytes are not checked, because the server describes tensors wrongly.
  bool patient = false;    // The client waits long, so only the server's answers end the feed.
};

// Takes all steps that the client can get, and returns how the feed ends. Checks that every text
// that a program might print is fit to print.
absl::Status TakeFeed(const FakeFeed& feed, const Taking& taking = {}) {
  const FakeServer server(feed);
  FeedClientOptions options = Wary(server);
  if (taking.patient) {
    options.connect_timeout = options.retry_for = absl::FromChrono(kLongestWait);
  }
  const absl::StatusOr<std::unique_ptr<FeedClient>> client =
      FeedClient::Create(SpecOf(feed), options);
  if (!client.ok()) return client.status();
  const DrainedFeed drained = Drain(**client);
  EXPECT_TRUE(taking.any_bytes || drained.wrong.empty()) << drained.wrong;
  EXPECT_TRUE(IsFitToPrint((*client)->Token().Encode()));
  EXPECT_TRUE(IsFitToPrint((*client)->stats().not_shared));
  EXPECT_TRUE(IsFitToPrint((*client)->info().identity().content_version()));
  return drained.end;
}

// The client refuses compressed messages, because a megabyte could become a gigabyte.
TEST(HostileServerTest, CompressedMessagesAreRefused) {
  EXPECT_THAT(TakeFeed({}, {.patient = true}), IsOk());
  EXPECT_FALSE(TakeFeed({.compresses = true}).ok());
}

TEST(HostileServerTest, NoValueInAnAnswerAboutAFeedDoesHarm) {
  v1::ResolveFeedResponse example;
  ASSERT_THAT(TakeFeed({.resolve =
                            [&example](v1::ResolveFeedResponse& answer) {
                              example = answer;
                              return absl::OkStatus();
                            }},
                       {.patient = true}),
              IsOk());
  int refused = 0;
  for (const Mutation& mutation : MutationsOf(example)) {
    SCOPED_TRACE(mutation.what);
    const absl::Status status = TakeFeed({.resolve = [&](v1::ResolveFeedResponse& answer) {
      mutation.apply(answer);
      return absl::OkStatus();
    }});
    EXPECT_TRUE(IsFitToPrint(status.message())) << status.message();
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

TEST(HostileServerTest, NoValueInACompactFormDoesHarm) {
  const auto factors = [](v1::CompactForm& form) {
    form.add_scale(2);
    form.add_bias(-1);
  };
  const auto table = [](v1::CompactForm& form) {
    for (int i = 0; i < 256; ++i) form.add_table(static_cast<float>(i));
  };
  const auto by_channel = [](v1::CompactForm& form) {
    form.set_channel_axis(1);
    for (int i = 0; i < 4 * 256; ++i) form.add_table(static_cast<float>(i));
  };
  int refused = 0;
  for (const std::function<void(v1::CompactForm&)>& fill :
       {std::function<void(v1::CompactForm&)>(factors), {table}, {by_channel}}) {
    v1::CompactForm example;
    fill(example);
    std::vector<Mutation> mutations = MutationsOf(example);
    mutations.push_back({"nothing", [](google::protobuf::Message&) {}});
    for (const Mutation& mutation : mutations) {
      // The client treats all entries of a table alike, so only entry 7 is tested.
      if (absl::StrContains(mutation.what, "table[") &&
          !absl::StrContains(mutation.what, "table[7]")) {
        continue;
      }
      SCOPED_TRACE(mutation.what);
      FakeFeed feed = {.example_bytes = 4, .pixels = true};
      feed.resolve = [&](v1::ResolveFeedResponse& answer) {
        v1::CompactForm form = example;
        mutation.apply(form);
        for (v1::TensorDescription& tensor : *answer.mutable_tensors()) {
          if (tensor.has_compact()) *tensor.mutable_compact() = form;
        }
        return absl::OkStatus();
      };
      const absl::Status status = TakeFeed(feed, {.any_bytes = true, .patient = true});
      EXPECT_TRUE(IsFitToPrint(status.message())) << status.message();
      EXPECT_TRUE(mutation.what != "nothing" || status.ok()) << status;
      refused += absl::IsInternal(status) ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 15);
}

TEST(HostileServerTest, NoValueInAChunkDoesHarm) {
  v1::Chunk example;
  int refused = 0;
  for (const Mutation& mutation : MutationsOf(example)) {
    SCOPED_TRACE(mutation.what);
    for (const bool with_right_checksum : {false, true}) {
      const absl::Status status = TakeFeed({.spoil = [&](int, int, FakeChunk& piece) {
        if (piece.header.step != 1 || piece.header.core != 1) return;
        piece.alter = [&](v1::Chunk& message) {
          mutation.apply(message);
          if (!with_right_checksum) return;
          const std::string data = message.data();
          message.clear_data();
          message.clear_header_crc32c();
          message.set_header_crc32c(Crc32c(message.SerializeAsString()));
          message.set_data(data);
        };
      }});
      EXPECT_TRUE(IsFitToPrint(status.message())) << status.message();
      refused += status.ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 50);
}

// For each hostile value in each field, calls a server that puts this value into its answer.
template <typename Response, typename Ask>
void ExpectHarmless(std::function<absl::Status(Response&)> FakeFeed::*answers, Ask ask) {
  Response example;
  FillEveryField(example);
  int refused = 0;
  for (const Mutation& mutation : MutationsOf(example)) {
    SCOPED_TRACE(mutation.what);
    FakeFeed feed;
    feed.*answers = [&](Response& answer) {
      answer = example;
      mutation.apply(answer);
      return absl::OkStatus();
    };
    const FakeServer server(feed);
    const absl::StatusOr<Response> answer = ask(server.address());
    if (answer.ok()) {
      EXPECT_EQ(FirstUnfit(*answer), "");
    } else {
      EXPECT_TRUE(IsFitToPrint(answer.status().message())) << answer.status();
      EXPECT_THAT(answer.status(), StatusIs(absl::StatusCode::kInternal, HasSubstr(" is ")));
      ++refused;
    }
  }
  EXPECT_GT(refused, 5);
}

TEST(HostileServerTest, NoValueInAServersStatusDoesHarm) {
  ExpectHarmless<v1::ServerStatusResponse>(&FakeFeed::status, [](const std::string& address) {
    return AskServerStatus(address, absl::FromChrono(kLongestWait));
  });
}

TEST(HostileServerTest, NoValueInACatalogueDoesHarm) {
  ExpectHarmless<v1::ListDatasetsResponse>(&FakeFeed::datasets, [](const std::string& address) {
    return AskDatasets(address, absl::FromChrono(kLongestWait));
  });
}

TEST(HostileServerTest, NoValueInADatasetsDescriptionDoesHarm) {
  ExpectHarmless<v1::DescribeDatasetResponse>(&FakeFeed::dataset, [](const std::string& address) {
    return AskDataset(address, "test", absl::FromChrono(kLongestWait));
  });
}

TEST(HostileServerTest, EveryRefusalKeepsItsCodeAndIsFitToPrint) {
  for (int code = 1; code <= 16; ++code) {
    for (const char* text : {"", "\x1b[2Jgone\nfor good \xff"}) {
      SCOPED_TRACE(absl::StrCat("code ", code, ", ", *text == '\0' ? "no text" : "a text"));
      FakeFeed feed;
      feed.refusal = grpc::Status(static_cast<grpc::StatusCode>(code), text);
      const FakeServer server(feed);
      FeedClientOptions options = Wary(server);
      // After the other codes the client gives up after a few tries at most, so a long timeout
      // costs no time.
      if (code != grpc::UNAVAILABLE && code != grpc::DEADLINE_EXCEEDED) {
        options.connect_timeout = options.retry_for = absl::FromChrono(kLongestWait);
      }
      const absl::Status created = FeedClient::Create(SpecOf(feed), options).status();
      const absl::Status status =
          AskServerStatus(server.address(), absl::FromChrono(kLongestWait)).status();
      for (const absl::Status& said : {created, status}) {
        EXPECT_FALSE(said.ok());
        EXPECT_TRUE(IsFitToPrint(said.message())) << said;
        EXPECT_THAT(std::string(said.message()),
                    HasSubstr(*text != '\0' ? "\\x1b[2Jgone\\nfor good" : ", without a message"));
      }
      EXPECT_EQ(static_cast<int>(status.code()), code);
      const bool tried_again = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
      const bool damaged = absl::IsAborted(status);
      EXPECT_EQ(created.code(), tried_again ? absl::StatusCode::kUnavailable
                                : damaged   ? absl::StatusCode::kDataLoss
                                            : status.code());
    }
  }
}

TEST(HostileServerTest, AnAnswerAboveTheMessageSizeLimitIsRefused) {
  const FakeFeed feed = {.resolve = [](v1::ResolveFeedResponse& answer) {
    answer.mutable_tensors(0)->set_name(std::string(3 << 20, 'x'));
    return absl::OkStatus();
  }};
  EXPECT_THAT(TakeFeed(feed, {.patient = true}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("larger than max")));
}

TEST(HostileServerTest, AFloodOfFramesIsCutOffWhateverTheyAre) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  for (const AnswerFlood& flood : AllAnswerFloods()) {
    SCOPED_TRACE(flood.name);
    const FloodingServer server(flood, /*flood_bytes=*/1024 * kMiB, /*floods=*/1);
    const absl::Status status =
        AskServerStatus(server.address(), absl::FromChrono(kLongestWait)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_TRUE(WaitUntil([&] { return server.ended() == 1; }));
    // The bound allows for bytes that were sent while the client's threads did not run, and for
    // bytes in the kernel's buffers.
    EXPECT_LT(server.most_bytes(), 256 * kMiB);
  }
}

TEST(HostileServerTest, AContentVersionThatFitsNoTokenIsRefused) {
  // A token with one of these versions could not be encoded.
  for (const std::string& version : {std::string(), std::string(201, 'v'), std::string("a\nb")}) {
    EXPECT_THAT(TakeFeed({.content_version = version}, {.patient = true}),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("identity.content_version is '")));
  }
  EXPECT_THAT(TakeFeed({.content_version = std::string(200, 'v')}, {.patient = true}), IsOk());
}

}  // namespace
}  // namespace systole
