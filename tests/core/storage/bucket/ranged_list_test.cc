// Tests lists that are read in ranges, with keys of many kinds and with servers that list wrongly.
// Each list must equal the keys of the bucket, or be given up (nullopt).
#include "core/storage/bucket/ranged_list.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr char kPrefix[] = "d/";

// Lists keys as a server does. Thread-safe while no public field is changed from outside.
struct FakeServer {
  explicit FakeServer(std::set<std::string> keys, size_t page_keys = 10, bool into_folders = true)
      : keys(std::move(keys)), page_keys(page_keys), into_folders(into_folders) {}

  const std::set<std::string> keys;
  const size_t page_keys;
  const bool into_folders;
  // Runs before a page is made. Its error is returned in place of the page. May be null.
  std::function<absl::Status(const ListPlace& place)> before = nullptr;
  // Changes a page before Read() returns the page. May be null.
  std::function<void(const ListPlace& place, ListPage& page)> change = nullptr;
  std::atomic<int> pages = 0;

  absl::StatusOr<ListPage> Read(const ListPlace& place) {
    if (before != nullptr) SYSTOLE_RETURN_IF_ERROR(before(place));
    ++pages;
    const std::string& after = place.token.empty() ? place.after : place.token;
    ListPage page;
    std::string last;
    size_t count = 0;
    for (auto key = keys.upper_bound(after); key != keys.end(); ++key) {
      const std::string entry = EntryOf(*key);
      if (entry == last || entry <= after) continue;
      if (count == page_keys) {
        page.next_token = last;
        break;
      }
      ++count;
      last = entry;
      if (entry != *key) {
        page.folders.push_back(entry);
      } else {
        page.keys.push_back(entry);
        page.objects.push_back({.size_bytes = key->size(), .etag = "\"1\"", .generation = ""});
      }
    }
    if (change != nullptr) change(place, page);
    return page;
  }

  // What a list shows for `key`: the key itself or, without into_folders, the folder of the key.
  std::string EntryOf(const std::string& key) const {
    const size_t slash = into_folders ? std::string::npos : key.find('/', sizeof(kPrefix) - 1);
    return slash + 1 == key.size() ? key
                                   : key.substr(0, slash + (slash == std::string::npos ? 0 : 1));
  }

  // The entries of the list of all keys.
  std::vector<std::string> Entries() const {
    std::set<std::string> entries;
    for (const std::string& key : keys) entries.insert(EntryOf(key));
    return {entries.begin(), entries.end()};
  }
};

using Listed = absl::StatusOr<std::optional<std::vector<std::string>>>;

// Lists in ranges what comes after the page `first`. Returns the entries without "s3://bucket/", or
// nullopt if the list must be read page by page.
Listed ListRest(FakeServer& server, const ListPage& first, const BucketListOptions& options = {}) {
  const BucketListing listing = {.prefix = {.scheme = "s3", .bucket = "bucket", .key = kPrefix},
                                 .into_folders = server.into_folders,
                                 .with_states = true};
  const absl::StatusOr<std::optional<BucketContents>> contents = ListInRanges(
      first, listing, /*has_generations=*/false, options, ListRoom(listing.prefix, options),
      [&server](const ListPlace& place) { return server.Read(place); });
  if (!contents.ok()) return contents.status();
  if (!contents->has_value()) return std::nullopt;
  const std::string root = listing.prefix.Root();
  std::vector<std::string> entries;
  for (const std::string& name : (*contents)->names) {
    EXPECT_TRUE(absl::StartsWith(name, root));
    entries.push_back(name.substr(root.size()));
    const auto state = (*contents)->states.find(name);
    if (name.back() == '/') continue;  // May be a folder, which has no state.
    const bool has_state = state != (*contents)->states.end();
    EXPECT_TRUE(has_state && state->second.size_bytes == entries.back().size()) << name;
  }
  return entries;
}

// The first page and ListRest(). The server must have more than one page.
Listed List(FakeServer& server, const BucketListOptions& options = {}) {
  const absl::StatusOr<ListPage> first = server.Read({});
  if (!first.ok()) return first.status();
  EXPECT_NE(first->next_token, "");
  Listed rest = ListRest(server, *first, options);
  if (!rest.ok() || !rest->has_value()) return rest;
  std::vector<std::string> entries;
  std::merge(first->keys.begin(), first->keys.end(), first->folders.begin(), first->folders.end(),
             std::back_inserter(entries));
  entries.insert(entries.end(), (*rest)->begin(), (*rest)->end());
  return entries;
}

std::set<std::string> Counted(int count) {
  std::set<std::string> keys;
  for (int i = 0; i < count; ++i) keys.insert(absl::StrFormat("d/train-%05d.tar", i));
  return keys;
}

int PagesOf(const FakeServer& server) {
  const size_t entries = server.Entries().size();
  return static_cast<int>((entries + server.page_keys - 1) / server.page_keys);
}

TEST(GuessSplitsTest, SplitsCountUpTheDigitsOfACounter) {
  EXPECT_THAT(
      GuessSplits("d/train-00000.tar", "d/train-00009.tar", "", 2, 100),
      ElementsAre("d/train-0001", "d/train-0002", "d/train-0003", "d/train-0004", "d/train-0005",
                  "d/train-0006", "d/train-0007", "d/train-0008", "d/train-0009", "d/train-001",
                  "d/train-002", "d/train-003", "d/train-004", "d/train-005", "d/train-006",
                  "d/train-007", "d/train-008", "d/train-009", "d/train-01", "d/train-02",
                  "d/train-03", "d/train-04", "d/train-05", "d/train-06", "d/train-07",
                  "d/train-08", "d/train-09", "d/train-1", "d/train-2", "d/train-3", "d/train-4",
                  "d/train-5", "d/train-6", "d/train-7", "d/train-8", "d/train-9"));
  EXPECT_THAT(GuessSplits("d/a-17", "d/a-24", "", 2, 100),
              ElementsAre("d/a-3", "d/a-4", "d/a-5", "d/a-6", "d/a-7", "d/a-8", "d/a-9"));
}

TEST(GuessSplitsTest, SplitsLieBetweenTheLastKeyAndTheEnd) {
  EXPECT_THAT(GuessSplits("d/a-100", "d/a-199", "d/a-5", 2, 100),
              ElementsAre("d/a-2", "d/a-3", "d/a-4"));
  EXPECT_THAT(GuessSplits("d/a-100", "d/a-199", "d/a-2", 2, 100), IsEmpty());
  EXPECT_THAT(GuessSplits("d/a-0100", "d/a-0199", "d/a-04", 2, 100),
              ElementsAre("d/a-02", "d/a-03"));
  EXPECT_THAT(GuessSplits("d/a-0100", "d/a-0199", "d/a-04x", 2, 100),
              ElementsAre("d/a-02", "d/a-03", "d/a-04"));
  EXPECT_THAT(GuessSplits("d/a-0100", "d/a-0199", "d/a-01\xff", 2, 100), IsEmpty());
}

TEST(GuessSplitsTest, FewSplitsAreSpreadEvenly) {
  EXPECT_THAT(GuessSplits("d/a-000", "d/a-009", "", 2, 2), ElementsAre("d/a-07", "d/a-4"));
  EXPECT_THAT(GuessSplits("d/a-000", "d/a-009", "", 2, 0), IsEmpty());
}

TEST(GuessSplitsTest, SplitsAlsoRaiseLettersAndEarlierNumbers) {
  EXPECT_THAT(GuessSplits("d/n8/a", "d/n8/z", "", 2, 100), ElementsAre("d/n9"));
  EXPECT_THAT(GuessSplits("d/xa1", "d/xa8", "", 2, 100),
              ElementsAre("d/xb", "d/xc", "d/xd", "d/xe", "d/xf", "d/xg", "d/xh", "d/xi", "d/xj",
                          "d/xk", "d/xl", "d/xm", "d/xn", "d/xo", "d/xp", "d/xq", "d/xr", "d/xs",
                          "d/xt", "d/xu", "d/xv", "d/xw", "d/xx", "d/xy", "d/xz", "d/y", "d/z"));
  EXPECT_THAT(GuessSplits("d/9", "d/9", "", 2, 100), IsEmpty());
  EXPECT_THAT(GuessSplits("", "", "", 0, 100), IsEmpty());
}

// Whether the page at `place` is the first one of a range whose start was guessed.
bool IsGuess(const ListPlace& place) { return place.token.empty() && !place.after.empty(); }

TEST(RangedListTest, ShardsAndWhatLiesBesideThemAreListed) {
  std::set<std::string> keys = {"d/labels.txt", "d/shards.manifest.idx", "d/train.manifest",
                                "d/z/1", "d/z/2"};
  for (int i = 0; i < 3000; ++i) {
    for (const char* ending : {"", ".idx", ".idx.hash"}) {
      keys.insert(absl::StrFormat("d/train-%05d-of-03000.tfrecord%s", i, ending));
    }
  }
  FakeServer server(keys, /*page_keys=*/100, /*into_folders=*/false);
  EXPECT_THAT(List(server), IsOkAndHolds(Optional(server.Entries())));
  EXPECT_EQ(server.Entries().back(), "d/z/");
  EXPECT_LE(server.pages, 2 * PagesOf(server) + 1);
}

// Requests wait at this gate until `wanted` requests wait at the same time. Then the gate opens and
// stays open.
class Gate {
 public:
  explicit Gate(int wanted) : wanted_(wanted) {}

  void Pass() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    ++waiting_;
    is_open_ = is_open_ || waiting_ >= wanted_;
    changed_.SignalAll();
    while (!is_open_ && changed_.WaitFor(mu_, absl::FromChrono(kLongestWait))) {
    }
    --waiting_;
  }
  bool is_open() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return is_open_;
  }

 private:
  const int wanted_;
  Mutex mu_;
  CondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_open_ ABSL_GUARDED_BY(mu_) = false;
};

// Six sets of keys. Each set has numbers in another form that people or programs use.
std::vector<std::set<std::string>> ManyKinds(int count) {
  std::vector<std::set<std::string>> kinds(6);
  for (int i = 0; i < count; ++i) {
    kinds[0].insert(absl::StrFormat("d/train-%05d-of-%05d.tfrecord", i, count));
    kinds[1].insert(absl::StrFormat("d/%012d.tar", i));
    kinds[2].insert(absl::StrCat("d/", i));
    kinds[3].insert(absl::StrFormat("d/%08x.jpg", static_cast<uint32_t>(i) * 2654435761U));
    kinds[4].insert(absl::StrFormat("d/2026-11-27/part-%02d/%04d", i / 1000, i % 1000));
    kinds[5].insert(absl::StrFormat("d/n%08d_%d.JPEG", 1440764 + i / 700 * 13, i % 700));
  }
  return kinds;
}

TEST(RangedListTest, SeveralPagesAreAskedForAtATime) {
  for (const std::set<std::string>& keys : ManyKinds(10'000)) {
    FakeServer server(keys, /*page_keys=*/50);
    // After the first page, the rest of the list is divided into two ranges. More ranges are made
    // only after another page, so no more than 2 requests can wait at the gate.
    Gate gate(2);
    server.before = [&](const ListPlace&) {
      if (server.pages > 0) gate.Pass();
      return absl::OkStatus();
    };
    EXPECT_THAT(List(server), IsOkAndHolds(Optional(server.Entries()))) << *keys.begin();
    EXPECT_TRUE(gate.is_open()) << *keys.begin();
    EXPECT_LE(server.pages, 2 * PagesOf(server) + 1);
  }
}

TEST(RangedListTest, RandomSetsOfKeysAreListedExactly) {
  std::mt19937 random(7);
  const auto draw = [&random](size_t bound) { return static_cast<size_t>(random() % bound); };
  const absl::string_view alphabets[] = {
      "01",   "0123456789",
      "09az", "0123456789abcdef",
      "/0a",  absl::string_view("\x01\x7f\xc3\xa4 +%&0a9z/", 13)};
  for (int round = 0; round < (kSanitized ? 100 : 1000); ++round) {
    std::set<std::string> keys;
    const absl::string_view alphabet = alphabets[draw(std::size(alphabets))];
    const size_t longest = 1 + draw(8);
    const std::string same = draw(2) == 0 ? "" : "train-00";
    const size_t count = 1 + draw(500);
    for (size_t i = 0; i < count; ++i) {
      std::string key = kPrefix + (draw(10) == 0 ? "" : same);
      for (size_t length = draw(longest + 1); length > 0; --length) {
        key += alphabet[draw(alphabet.size())];
      }
      keys.insert(key);
    }
    FakeServer server(keys, /*page_keys=*/1 + draw(20), /*into_folders=*/draw(2) == 0);
    if (server.Entries().size() <= server.page_keys) continue;
    const Listed listed = List(server);
    ASSERT_THAT(listed, IsOkAndHolds(Optional(server.Entries()))) << "round " << round;
    ASSERT_LE(server.pages, 2 * PagesOf(server) + 1) << "round " << round;
  }
}

TEST(RangedListTest, KeysThatCannotBeGuessedNeedNoAdditionalPages) {
  std::set<std::string> keys;
  for (size_t i = 0; i < 200; ++i) keys.insert(kPrefix + std::string(i, '-'));
  FakeServer server(keys);
  EXPECT_THAT(List(server), IsOkAndHolds(Optional(server.Entries())));
  EXPECT_EQ(server.pages, PagesOf(server));
}

TEST(RangedListTest, AServerThatIgnoresStartAfterIsReadPageByPage) {
  FakeServer server(Counted(1000));
  server.change = [](const ListPlace& place, ListPage& page) {
    if (IsGuess(place) && !page.keys.empty()) page.keys.front() = "d/train-00000.tar";
  };
  EXPECT_THAT(List(server), IsOkAndHolds(Eq(std::nullopt)));
}

TEST(RangedListTest, AServerThatRefusesStartAfterIsReadPageByPage) {
  for (const absl::Status& refusal :
       {absl::FailedPreconditionError("x"), absl::PermissionDeniedError("x"),
        absl::DataLossError("x"), absl::NotFoundError("x"), absl::ResourceExhaustedError("x")}) {
    FakeServer server(Counted(1000));
    server.before = [&refusal](const ListPlace& place) {
      return IsGuess(place) ? refusal : absl::OkStatus();
    };
    EXPECT_THAT(List(server), IsOkAndHolds(Eq(std::nullopt)));
  }
}

// The first page of each guessed range is wrong: the server leaves out the first key, or adds a key
// in front that the bucket does not have.
TEST(RangedListTest, AServerThatOmitsOrAddsKeysInARangeIsReadPageByPage) {
  for (const bool leaves_out : {true, false}) {
    FakeServer server(Counted(1000));
    server.change = [leaves_out](const ListPlace& place, ListPage& page) {
      if (!IsGuess(place) || page.keys.empty()) return;
      if (leaves_out) {
        page.keys.erase(page.keys.begin());
        page.objects.pop_back();
      } else {
        page.keys.insert(page.keys.begin(), place.after + "!");
        page.objects.emplace_back();
      }
    };
    EXPECT_THAT(List(server), IsOkAndHolds(Eq(std::nullopt))) << leaves_out;
  }
}

TEST(RangedListTest, AServerThatListsKeysOutOfOrderIsReadPageByPage) {
  FakeServer server(Counted(1000));
  ListPage first = *server.Read({});
  std::swap(first.keys.front(), first.keys.back());
  EXPECT_THAT(ListRest(server, first), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_EQ(server.pages, 1);
  server.change = [](const ListPlace& place, ListPage& page) {
    if (page.keys.size() > 1 && !place.token.empty()) std::swap(page.keys[0], page.keys[1]);
  };
  EXPECT_THAT(List(server), IsOkAndHolds(Eq(std::nullopt)));
}

TEST(RangedListTest, KeysOutsideThePrefixOrStuckPagesForceReadingPageByPage) {
  FakeServer foreign(Counted(1000));
  foreign.change = [](const ListPlace& place, ListPage& page) {
    if (place.token.empty()) return;
    page.keys.push_back("e");
    page.objects.emplace_back();
  };
  EXPECT_THAT(List(foreign), IsOkAndHolds(Eq(std::nullopt)));
  FakeServer stuck(Counted(1000));
  stuck.change = [](const ListPlace& place, ListPage& page) {
    if (!place.token.empty()) page = {.next_token = "d/train-0"};
  };
  EXPECT_THAT(List(stuck), IsOkAndHolds(Eq(std::nullopt)));
}

TEST(RangedListTest, EmptyPagesAreFollowed) {
  FakeServer server(Counted(1000));
  std::atomic<int> reads = 0;
  server.change = [&reads](const ListPlace& place, ListPage& page) {
    if (place.token.empty() || ++reads % 3 != 0 || absl::EndsWith(place.token, "~")) return;
    // The page becomes empty. Its token leads to the keys that the page had.
    page = {.next_token = place.token + "~"};
  };
  EXPECT_THAT(List(server), IsOkAndHolds(Optional(server.Entries())));
}

TEST(RangedListTest, AnOutageEndsTheList) {
  for (const absl::Status& error :
       {absl::UnavailableError("out"), absl::DeadlineExceededError("out"),
        absl::CancelledError("out")}) {
    FakeServer server(Counted(1000));
    server.before = [&](const ListPlace&) { return server.pages > 30 ? error : absl::OkStatus(); };
    EXPECT_THAT(List(server), StatusIs(error.code(), "out"));
    EXPECT_LE(server.pages, 30 + kRangesAtOnce);
  }
}

TEST(RangedListTest, AllRangesTogetherAreBounded) {
  FakeServer server(Counted(1000));
  const size_t rest = 990;  // Names after the first page.
  const uint64_t bytes = rest * std::string("s3://bucket/d/train-00000.tar").size();
  EXPECT_THAT(List(server, {.max_names = rest, .max_name_bytes = bytes}),
              IsOkAndHolds(Optional(server.Entries())));
  EXPECT_THAT(List(server, {.max_names = rest - 1}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 989 names")));
  EXPECT_THAT(List(server, {.max_name_bytes = bytes - 1}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("bytes of names")));
  // A list in ranges needs no larger max_pages than a list without ranges.
  EXPECT_THAT(List(server, {.max_pages = 100}), IsOkAndHolds(Optional(server.Entries())));
  server.pages = 0;
  EXPECT_THAT(List(server, {.max_pages = 20}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 20 pages")));
  EXPECT_LE(server.pages, 2 * 20 + 1 + kRangesAtOnce);
}

TEST(RangedListTest, AnInterruptionEndsAllRanges) {
  FakeServer server(Counted(1000));
  InterruptFlag unwanted;
  server.before = [&](const ListPlace&) {
    if (server.pages == 20) unwanted.Raise();
    return InterruptRequested() ? InterruptedError() : absl::OkStatus();
  };
  const InterruptScope scope(unwanted);
  EXPECT_THAT(List(server), StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")));
  EXPECT_LE(server.pages, 20 + kRangesAtOnce);
}

}  // namespace
}  // namespace systole
