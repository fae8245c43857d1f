#include "core/plan/epoch_bytes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "core/cache/disk_entry.h"
#include "core/order/order.h"
#include "core/plan/epoch_parts.h"
#include "core/plan/read_blocks.h"
#include "core/spec/order_spec.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "systole/v1/feed.pb.h"

namespace systole {
namespace {

// The most positions of selections in a sample, for all members of a mixture together. To look up a
// position may take some microseconds, and a client waits meanwhile.
constexpr int64_t kSampled = 1024;
// Bounds of a proposal: the bytes of a block, and the blocks of a window.
constexpr int64_t kLeastBlockBytes = int64_t{ReadBlocks::kRunBytes};
constexpr int64_t kMostBlockBytes = int64_t{4 * ReadBlocks::kRunBytes};
constexpr int64_t kLeastBlocks = 16;
// The memory holds this many windows. While one window is used, the next ones are fetched. If there
// were room for only two, threads would wait for the network.
constexpr int64_t kWindowsInMemory = 4;
// A window as long as n blocks overlaps up to n + 2 blocks: one more because it may begin within a
// block, and one more because the last block of the set is short.
constexpr int64_t kBorderBlocks = 2;
// A file of the disk's cache counts as a multiple of 4 KiB. So each file loses half of 4 KiB on
// average.
constexpr int64_t kDiskLossBytes = int64_t{kDiskEntryHeaderBytes} + 2048;
// A cache keeps no value that is larger than 1 / kMostOfACache of the cache (KeptSet::Admits).
constexpr int64_t kMostOfACache = 8;
// Numbers are doubles here. A double holds every whole number of bytes below 9 PB exactly.
struct Shuffle {
  ShuffleMode mode = ShuffleMode::kNone;
  double block = 0;   // Records, as in OrderSpec.
  double window = 0;  // Records.
};

double Least(double a, double b) { return std::min(a, b); }

// How the records of files take turns, as the selections of the spec say.
struct Turns {
  double files = 1;    // How many files take turns.
  double records = 0;  // The records in a turn. 0: all records of a file.
};

void Add(const google::protobuf::RepeatedPtrField<v1::Select>& selects, Turns& turns) {
  for (const v1::Select& select : selects) {
    if (!select.has_interleave()) continue;
    turns.files = std::max(turns.files, static_cast<double>(select.interleave().cycle_length()));
    turns.records = std::max<double>(1, static_cast<double>(select.interleave().block_length()));
  }
}

Turns TurnsOf(const FeedPlan& plan, const std::vector<EpochPart>& parts) {
  Turns turns;
  Add(plan.spec().select(), turns);
  for (const v1::Member& member : MembersOf(plan.spec())) Add(member.select(), turns);
  // Each record of a zip needs a run of each member.
  const int64_t far = plan.dataset().zipped().empty()
                          ? std::count_if(parts.begin(), parts.end(),
                                          [](const EpochPart& part) { return part.bytes > 0; })
                          : DatasetsInRuns(plan.dataset());
  if (far > 1) {
    turns.files *= static_cast<double>(far);
    turns.records = 1;
  }
  return turns;
}

// A part for each member of a mixture. Otherwise one part, for the feed's dataset.
std::vector<EpochPart> PartsOf(const FeedPlan& plan, double run) {
  const OrderSpec& order = plan.order().spec();
  const Dataset& dataset = plan.dataset();
  if (order.mixture == nullptr) {
    return {PartOf(dataset, dataset,
                   {.num_records = dataset.num_records(), .selection = order.selection}, kSampled,
                   run)};
  }
  const absl::Span<const MixtureMember> members = order.mixture->members();
  const int64_t most = kSampled / std::ssize(members);
  const std::vector<int64_t>& weights = order.mixture->first_weights();
  const auto total =
      static_cast<double>(std::accumulate(weights.begin(), weights.end(), int64_t{0}));
  std::vector<EpochPart> parts;
  for (const MixtureMember& member : members) {
    const auto weight = static_cast<double>(weights[parts.size()]);
    const Dataset& own = dataset.members().empty() ? dataset : *dataset.members()[parts.size()];
    EpochPart part = PartOf(dataset, own, member.records, most, run);
    part.passes *= static_cast<double>(order.num_records) * weight / total / part.positions;
    parts.push_back(part);
  }
  return parts;
}

// Adds to `part` what WINDOW costs. `whole`: each block has neighbouring records of the dataset.
// `files`: in how many files a block has runs. In a zip, for example, each member has other files.
void AddWindow(const Shuffle& shuffle, bool whole, double files, EpochPart& part) {
  const double run = ReadBlocks::kRunBytes;
  const double block = Least(shuffle.block, part.positions);
  const double window = Least(shuffle.window, part.positions);
  const double blocks = std::ceil(part.positions / block);
  // The number of blocks that a window overlaps. A window may begin and end within a block, and may
  // contain the short last block of the set.
  const double overlaps = Least(blocks, std::floor((window - 2) / block) + kBorderBlocks +
                                            (std::fmod(part.positions, block) == 0 ? 0 : 1));
  const double pass = part.bytes - part.alone;
  double block_bytes = pass / blocks;
  if (whole) {
    const double border = Least(part.border, pass);
    block_bytes += border;
    part.bytes += (blocks - 1) * border;
    part.requests = Least(part.records, part.requests + (blocks - 1) * files);
  } else {
    // The runs at both ends of a block belong to other blocks, too.
    const double ends = Least(run * files, pass);
    block_bytes += ends;
    part.bytes = part.alone + Least(pass + (blocks - 1) * ends, std::max(pass, part.records * run));
    part.requests = Least(part.records, part.requests + (blocks - 1) * files);
  }
  part.held = Least(overlaps * block_bytes, pass);
}

// The bytes that an epoch fetches if it needs `bytes` of the part. Bytes that are kept are not
// fetched.
double Fetched(double bytes, const EpochPart& part) {
  // This case avoids rounding for a whole pass.
  if (bytes == part.bytes) return bytes - part.kept;
  return part.bytes == 0 ? 0 : bytes * (1 - part.kept / part.bytes);
}

// A cache keeps the bytes that came first. So each part's share of `kept` is proportional to the
// bytes that an epoch needs of the part.
void ShareOut(double kept, std::vector<EpochPart>& parts) {
  for (size_t round = 0; round < parts.size() && kept > 0; ++round) {
    double open = 0;
    for (const EpochPart& part : parts) open += part.kept < part.bytes ? part.needs() : 0;
    if (open == 0) return;
    double left = 0;
    for (EpochPart& part : parts) {
      if (part.kept >= part.bytes) continue;
      const double share = kept * (part.needs() / open);
      const double taken = Least(share, part.bytes - part.kept);
      part.kept += taken;
      left += share - taken;
    }
    kept = left;
  }
}

// How many bytes a cache on disk keeps, if blocks have `block` bytes.
double DiskRoom(const ReadRoom& room, double block) {
  const auto disk = static_cast<double>(room.disk_bytes);
  if (block > disk / kMostOfACache) return 0;
  return disk * block / (block + kDiskLossBytes);
}

int64_t Whole(double number) { return std::llround(number); }

EpochBytes BytesOf(const FeedPlan& plan, const Shuffle& shuffle, const ReadRoom& room) {
  const Dataset& dataset = plan.dataset();
  const OrderSpec& order = plan.order().spec();
  EpochBytes epoch = {.set_bytes = static_cast<int64_t>(dataset.far_bytes())};
  if (epoch.set_bytes == 0) return epoch;
  double run = ReadBlocks::kRunBytes;
  if (shuffle.mode == ShuffleMode::kGlobal) {
    // With GLOBAL, runs are kept only in memory, as in ReadAhead.
    run = epoch.set_bytes <= room.memory_bytes ? ReadBlocks::kKeptRunBytes : 0;
  }
  const bool whole = order.selection == nullptr && order.mixture == nullptr;
  std::vector<EpochPart> parts = PartsOf(plan, run);
  const Turns turns = TurnsOf(plan, parts);

  double set = 0;  // The bytes that all parts fetch, each byte counted once.
  double needs = 0;
  double records = 0;
  double requests = 0;
  double held = 0;
  bool by_record = true;
  for (EpochPart& part : parts) {
    if (shuffle.mode == ShuffleMode::kWindow && !part.by_record) {
      AddWindow(shuffle, whole, turns.files, part);
    }
    by_record = by_record && (part.by_record || part.bytes == 0);
    set += part.bytes;
    needs += part.needs();
    records += part.records * part.passes;
    requests += part.requests * part.passes;
    held += part.held;
  }
  epoch.keeps_all = std::max(whole ? Whole(set) : 0, epoch.set_bytes) <= room.kept_bytes();
  // How many times a run is needed: about once for each of its records.
  double uses = requests == 0 ? 1 : records / requests;
  if (shuffle.mode == ShuffleMode::kNone && turns.files > 1 && !by_record) {
    held = Least(turns.files * run, set);
    uses = std::max(1.0, uses / turns.records);
  }

  const double block = requests == 0 ? 0 : needs / requests;
  const auto memory = static_cast<double>(room.memory_bytes);
  const double free = memory - Least(memory / 2, ReadRoom::kReads * block);
  const double kept = epoch.keeps_all ? set : std::max({free - held, 0.0, DiskRoom(room, block)});
  const double lost = epoch.keeps_all || held <= free ? 0 : 1 - free / held;
  ShareOut(kept, parts);
  double first = 0;
  double later = 0;
  for (const EpochPart& part : parts) {
    const double once = part.bytes * Least(part.passes, 1);
    const double again = part.needs() * lost * (uses - 1);
    first += once + Fetched(part.needs() - once + again, part);
    later += Fetched(part.needs() + again, part);
  }
  epoch.first_bytes = Whole(first);
  epoch.later_bytes = Whole(later);
  epoch.first_requests =
      Whole(needs == 0 ? 0 : std::ceil(requests * static_cast<double>(epoch.first_bytes) / needs));
  epoch.held_bytes = Whole(held);
  epoch.by_record = by_record;
  epoch.holds = lost == 0;
  epoch.exact = whole && epoch.holds && parts.front().border == 0;
  return epoch;
}

}  // namespace

EpochBytes EpochBytesOf(const FeedPlan& plan, const ReadRoom& room) {
  const OrderSpec& order = plan.order().spec();
  return BytesOf(plan,
                 {.mode = order.mode,
                  .block = static_cast<double>(order.block_records),
                  .window = static_cast<double>(order.window_records)},
                 room);
}

std::optional<WindowProposal> ProposeWindow(const FeedPlan& plan, const ReadRoom& room) {
  const Dataset& dataset = plan.dataset();
  const auto set = static_cast<int64_t>(dataset.far_bytes());
  if (set == 0 || set <= room.kept_bytes() || ReadsEachRecord(dataset)) return std::nullopt;
  const OrderSpec& order = plan.order().spec();
  // Each member of a mixture has windows of its own.
  const auto members =
      order.mixture == nullptr ? int64_t{1} : static_cast<int64_t>(order.mixture->members().size());
  const int64_t room_bytes = room.memory_bytes / kWindowsInMemory / members;
  const double records =
      std::clamp(WholePart(dataset, 0).records, 1.0, static_cast<double>(dataset.num_records()));
  const double record = std::max(1.0, static_cast<double>(set) / records);
  const double block_bytes = static_cast<double>(
      std::clamp(room_bytes / (kLeastBlocks + kBorderBlocks), kLeastBlockBytes, kMostBlockBytes));
  const int64_t most = order.num_records;
  WindowProposal window;
  window.block_records = std::clamp<int64_t>(static_cast<int64_t>(block_bytes / record), 1, most);
  if (static_cast<double>(window.block_records) * record < kLeastBlockBytes &&
      window.block_records < most) {
    ++window.block_records;
  }
  const double own_bytes = static_cast<double>(window.block_records) * record;
  const auto fit = static_cast<int64_t>(static_cast<double>(room_bytes) / own_bytes);
  const int64_t blocks = std::max(kLeastBlocks, fit - kBorderBlocks);
  window.window_records =
      blocks > most / window.block_records ? most : blocks * window.block_records;
  const Shuffle shuffle = {.mode = ShuffleMode::kWindow,
                           .block = static_cast<double>(window.block_records),
                           .window = static_cast<double>(window.window_records)};
  // memory_bytes is rounded up to MiB, because CostText() shows it in MiB.
  constexpr int64_t kMib = int64_t{1} << 20;
  const int64_t held = BytesOf(plan, shuffle, room).held_bytes;
  window.memory_bytes = (kWindowsInMemory * held / kMib + 1) * kMib;
  window.epoch = BytesOf(plan, shuffle,
                         {.memory_bytes = std::max(room.memory_bytes, window.memory_bytes),
                          .disk_bytes = room.disk_bytes});
  return window;
}

bool IsWorthIt(const EpochBytes& epoch, const WindowProposal& window) {
  return static_cast<double>(window.epoch.first_bytes) <
             0.99 * static_cast<double>(epoch.first_bytes) ||
         2 * window.epoch.first_requests < epoch.first_requests;
}

}  // namespace systole
