#include "core/storage/bucket/ranged_list.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"

namespace systole {
namespace {

// The entries of a page: its keys and folders, merged into one ascending list. Nullopt if the page
// has its keys or its folders out of order, or has an entry that does not come after `after`.
std::optional<std::vector<absl::string_view>> EntriesInOrder(const ListPage& page,
                                                             absl::string_view after) {
  std::vector<absl::string_view> entries;
  entries.reserve(page.keys.size() + page.folders.size());
  std::merge(page.keys.begin(), page.keys.end(), page.folders.begin(), page.folders.end(),
             std::back_inserter(entries));
  if (!entries.empty() && entries.front() <= after) return std::nullopt;
  const auto wrong =
      std::adjacent_find(entries.begin(), entries.end(), std::greater_equal<absl::string_view>());
  if (wrong != entries.end()) return std::nullopt;
  return entries;
}

// Removes the entries that come after `end` from the page.
void CutAfter(ListPage& page, const std::string& end) {
  const auto cut = [&end](std::vector<std::string>& sorted) {
    sorted.erase(std::upper_bound(sorted.begin(), sorted.end(), end), sorted.end());
  };
  cut(page.keys);
  cut(page.folders);
  page.objects.resize(page.keys.size());
}

// Whether an error of a page ends the list. After any other error the list may still be readable
// page by page.
bool EndsList(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) || absl::IsCancelled(error);
}

// A range of the list: the entries after `after`, up to and including `end`.
struct Range {
  Range(ListGathering gathering, std::string after, std::string end, std::string token = "")
      : gathering(std::move(gathering)),
        last(after),
        end(std::move(end)),
        next({.token = std::move(token), .after = std::move(after)}) {}

  ListGathering gathering;
  std::string last;        // The last entry so far. Before the first entry: `after`.
  std::string end;         // Empty: the range goes on to the end of the list.
  ListPlace next;          // Where the next page begins.
  std::string first = {};  // The first entry. Empty: there is none so far.
  // Set when the range is done: the first entry of the list after `end`. Empty: there is none.
  std::string beyond = {};
  int idle_pages = 0;
};

using RangeAt = std::list<Range>::iterator;

class RangedList {
 public:
  RangedList(const BucketListing& listing, bool has_generations, const BucketListOptions& options,
             const ListRoom& room, ReadListPage read)
      : listing_(listing),
        has_generations_(has_generations),
        options_(options),
        read_(read),
        room_(room) {}

  absl::StatusOr<std::optional<BucketContents>> List(const ListPage& first);

 private:
  bool CanTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !waiting_.empty() || working_ == 0;
  }
  // Waits for a range that no thread lists, and returns it. Nullopt: all ranges are done, or the
  // list has stopped.
  std::optional<RangeAt> Take() ABSL_LOCKS_EXCLUDED(mu_);
  void Work() ABSL_LOCKS_EXCLUDED(mu_);
  // Reads pages until the range is done or the list stops.
  void ReadAll(RangeAt range) ABSL_LOCKS_EXCLUDED(mu_);
  // Adds a page to the range. Returns whether the range has another page to be read.
  bool Add(RangeAt range, ListPage page) ABSL_LOCKS_EXCLUDED(mu_);
  // Divides the part of the range that is still to be listed. `first` is the first entry of the
  // page that was listed last.
  void Divide(RangeAt range, absl::string_view first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Stops the list. List() then returns `error` or, if `error` is OK, nullopt. Always returns
  // false.
  bool Stop(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mu_);
  bool StopLocked(const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether `beyond` of each range is the first entry of the ranges after it. REQUIRES: all ranges
  // are done.
  bool FitTogether() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const BucketListing& listing_;
  const bool has_generations_;
  const BucketListOptions& options_;
  const ReadListPage read_;

  Mutex mu_;
  CondVar changed_;
  // In the order of keys. The lock guards the list. Each range is used without the lock, by the
  // thread that lists it.
  std::list<Range> ranges_ ABSL_GUARDED_BY(mu_);
  std::deque<RangeAt> waiting_ ABSL_GUARDED_BY(mu_);  // Ranges that no thread lists.
  int working_ ABSL_GUARDED_BY(mu_) = 0;              // Ranges that a thread lists.
  // The number of pages so far, without the last page of each range. Counted in this way, the
  // number is never greater than that of a list without ranges.
  int pages_ ABSL_GUARDED_BY(mu_) = 1;
  int pages_with_names_ ABSL_GUARDED_BY(mu_) = 1;  // How many of pages_ have names.
  ListRoom room_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mu_);  // Why the list has stopped.
};

absl::StatusOr<std::optional<BucketContents>> RangedList::List(const ListPage& first) {
  const auto entries = EntriesInOrder(first, "");
  if (!entries.has_value() || entries->empty()) return std::nullopt;
  {
    MutexLock lock(mu_);
    ranges_.emplace_back(ListGathering(listing_, has_generations_), std::string(entries->back()),
                         "", first.next_token);
    waiting_.push_back(ranges_.begin());
    Divide(ranges_.begin(), entries->front());
  }
  const InterruptFlag* const unwanted = HeededInterruptFlag();
  ParallelFor(kRangesAtOnce, kRangesAtOnce, [&](int64_t) {
    std::optional<InterruptScope> scope;  // Work() heeds the caller's interrupt flag.
    if (unwanted != nullptr) scope.emplace(*unwanted);
    Work();
  });
  MutexLock lock(mu_);
  if (!error_.ok()) return error_;
  if (stopped_ || !FitTogether()) return std::nullopt;
  BucketContents contents;
  for (Range& range : ranges_) AppendContents(contents, range.gathering.TakeContents());
  return contents;
}

std::optional<RangeAt> RangedList::Take() {
  MutexLock lock(mu_);
  while (!CanTake()) changed_.Wait(mu_);
  if (stopped_ || waiting_.empty()) return std::nullopt;
  ++working_;
  const RangeAt range = waiting_.front();
  waiting_.pop_front();
  return range;
}

void RangedList::Work() {
  while (const std::optional<RangeAt> range = Take()) {
    ReadAll(*range);
    MutexLock lock(mu_);
    --working_;
    changed_.SignalAll();
  }
}

void RangedList::ReadAll(RangeAt range) {
  while (true) {
    absl::StatusOr<ListPage> page = read_(range->next);
    if (!page.ok()) {
      Stop(EndsList(page.status()) ? page.status() : absl::OkStatus());
      return;
    }
    if (!Add(range, *std::move(page))) return;
  }
}

bool RangedList::Add(RangeAt range, ListPage page) {
  const auto entries = EntriesInOrder(page, range->last);
  if (!entries.has_value()) return Stop(absl::OkStatus());
  const auto end = range->end.empty()
                       ? entries->end()
                       : std::upper_bound(entries->begin(), entries->end(), range->end);
  const bool has_names = end != entries->begin();
  const std::string first(has_names ? entries->front() : "");
  if (has_names) range->last = std::string(*std::prev(end));
  if (range->first.empty()) range->first = first;
  const bool is_done = end != entries->end() || page.next_token.empty();
  if (end != entries->end()) {
    range->beyond = std::string(*end);
    CutAfter(page, range->end);
  }
  const absl::StatusOr<NewNames> added = range->gathering.Add(page);
  if (!added.ok()) return Stop(absl::OkStatus());
  range->idle_pages = has_names ? 0 : range->idle_pages + 1;
  const bool goes_on =
      page.next_token != range->next.token && range->idle_pages <= options_.max_idle_pages;
  range->next.token = std::move(page.next_token);

  MutexLock lock(mu_);
  if (stopped_) return false;
  if (absl::Status taken = room_.Take(*added); !taken.ok()) return StopLocked(taken);
  if (is_done) return false;
  if (!goes_on) return StopLocked(absl::OkStatus());
  if (++pages_ > options_.max_pages) {
    return StopLocked(absl::ResourceExhaustedError(
        absl::StrCat("the list has more than ", options_.max_pages, " pages")));
  }
  if (has_names) {
    ++pages_with_names_;
    Divide(range, first);
  }
  return true;
}

void RangedList::Divide(RangeAt range, absl::string_view first) {
  const int busy = working_ + static_cast<int>(waiting_.size());
  const int further =
      std::min(kRangesAtOnce - busy, pages_with_names_ + 1 - static_cast<int>(ranges_.size()));
  if (further <= 0) return;
  const std::vector<std::string> splits = GuessSplits(
      first, range->last, range->end, listing_.prefix.key.size(), static_cast<size_t>(further));
  RangeAt before = range;
  for (const std::string& split : splits) {
    const RangeAt after =
        ranges_.emplace(std::next(before), ListGathering(listing_, has_generations_), split,
                        std::exchange(before->end, split));
    waiting_.push_back(after);
    before = after;
  }
  if (!splits.empty()) changed_.SignalAll();
}

bool RangedList::Stop(const absl::Status& error) {
  MutexLock lock(mu_);
  return StopLocked(error);
}

bool RangedList::StopLocked(const absl::Status& error) {
  if (!stopped_) error_ = error;
  stopped_ = true;
  changed_.SignalAll();
  return false;
}

bool RangedList::FitTogether() {
  absl::string_view next_entry;  // The first entry of the ranges after `range`, or empty.
  for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range) {
    if (range->beyond != next_entry) return false;
    if (!range->first.empty()) next_entry = range->first;
  }
  return true;
}

// A guess about the beginning of later keys: the page's last key up to `position`, and then
// `character`.
struct Guess {
  size_t position = 0;
  char character = 0;
};

// The greatest character that later keys may have in the place of `c`: '9' for a digit; 'z' or 'Z'
// for a letter, if `letters` is true; otherwise `c` itself.
char LastAfter(char c, bool letters) {
  if (absl::ascii_isdigit(c)) return '9';
  if (letters && absl::ascii_islower(c)) return 'z';
  return letters && absl::ascii_isupper(c) ? 'Z' : c;
}

// The guesses for the positions [begin, stop) of `last`, in ascending order of the beginnings that
// they give. REQUIRES: last <= end, or `end` is empty.
std::vector<Guess> GuessesIn(absl::string_view last, absl::string_view end, size_t begin,
                             size_t stop, bool letters) {
  // Where `last` first differs from `end`. At an earlier position, a greater character would make a
  // key greater than `end`.
  const auto border = static_cast<size_t>(
      std::mismatch(last.begin(), last.end(), end.begin(), end.end()).first - last.begin());
  const bool has_end = !end.empty();
  std::vector<Guess> guesses;
  for (size_t i = stop; i > begin && !(has_end && i <= border); --i) {
    const size_t position = i - 1;
    const char most = LastAfter(last[position], letters);
    for (int c = last[position] + 1; c <= most; ++c) {
      if (has_end && position == border) {
        const int bound = static_cast<unsigned char>(end[position]);
        if (c > bound || (c == bound && end.size() == position + 1)) break;
      }
      guesses.push_back({position, static_cast<char>(c)});
    }
  }
  return guesses;
}

}  // namespace

absl::StatusOr<std::optional<BucketContents>> ListInRanges(
    const ListPage& first, const BucketListing& listing, bool has_generations,
    const BucketListOptions& options, const ListRoom& room, ReadListPage read) {
  return RangedList(listing, has_generations, options, room, read).List(first);
}

std::vector<std::string> GuessSplits(absl::string_view first, absl::string_view last,
                                     absl::string_view end, size_t prefix_bytes, size_t at_most) {
  const auto common = static_cast<size_t>(
      std::mismatch(first.begin(), first.end(), last.begin(), last.end()).second - last.begin());
  if (common == last.size() || common < prefix_bytes || at_most == 0) return {};
  // `common` is the first position at which the keys of the page differ. If the page's keys have
  // many different characters at this position, the keys that share one character fill less than a
  // page, so the list is not divided here. If the page has just two successive characters, the keys
  // with one of them fill about a page, and the list may be divided here.
  const bool differs_by_one = common < first.size() && last[common] - first[common] == 1;
  const size_t stop = common + (differs_by_one ? 1 : 0);
  // The digits right before `common` belong to a counter. Numbers and words before the counter
  // change less often, so they are used only if the counter gives no guess.
  size_t counter = common;
  while (counter > prefix_bytes && absl::ascii_isdigit(last[counter - 1])) --counter;
  std::vector<Guess> guesses = GuessesIn(last, end, counter, stop, /*letters=*/false);
  if (guesses.empty()) guesses = GuessesIn(last, end, prefix_bytes, stop, /*letters=*/false);
  if (guesses.empty()) guesses = GuessesIn(last, end, prefix_bytes, stop, /*letters=*/true);
  std::vector<std::string> splits;
  const size_t count = std::min(at_most, guesses.size());
  for (size_t i = 1; i <= count; ++i) {
    const Guess& guess =
        guesses[count == guesses.size() ? i - 1 : i * guesses.size() / (count + 1)];
    splits.push_back(absl::StrCat(last.substr(0, guess.position), std::string(1, guess.character)));
  }
  return splits;
}

}  // namespace systole
