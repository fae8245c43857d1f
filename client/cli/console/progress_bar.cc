#include "client/cli/console/progress_bar.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace systole {
namespace {

constexpr int kWideBar = 30;
constexpr int kNarrowBar = 10;
// No rate is shown before this time, because the start of a job says little about the rest of it.
constexpr absl::Duration kFirstRate = absl::Seconds(1);
// Moves the cursor to the first column and clears the line.
constexpr char kClearLine[] = "\r\x1b[K";

int64_t PercentOf(int64_t done, int64_t total) {
  return total <= 0 ? 100 : std::min<int64_t>(100, static_cast<int64_t>(100.0 * done / total));
}

std::string BarText(int64_t percent, int columns) {
  std::string bar(static_cast<size_t>(percent * columns / 100), '=');
  if (bar.size() < static_cast<size_t>(columns)) bar += '>';
  bar.resize(static_cast<size_t>(columns), ' ');
  return absl::StrCat("[", bar, "]");
}

// The value with about three digits.
std::string ShortNumber(double value) {
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return absl::StrFormat("%.*f", decimals, value);
}

struct ByteUnit {
  double bytes;
  const char* name;
};
// The unit in which numbers of bytes up to `most` are shown.
ByteUnit UnitFor(double most) {
  if (most >= 1e9) return {1e9, "GB"};
  if (most >= 1e6) return {1e6, "MB"};
  return {1e3, "kB"};
}

std::string CountText(const Progress& progress) {
  const auto of_total = [&](const std::string& done, const std::string& total) {
    return progress.total.has_value() ? absl::StrCat(done, "/", total) : done;
  };
  const int64_t total = progress.total.value_or(0);
  switch (progress.unit) {
    case ProgressUnit::kItems:
      return of_total(absl::StrCat(progress.done), absl::StrCat(total));
    case ProgressUnit::kMilliseconds:
      return of_total(absl::StrCat(progress.done / 1000), absl::StrCat(total / 1000)) + " s";
    case ProgressUnit::kBytes:
      break;
  }
  const ByteUnit unit = UnitFor(static_cast<double>(std::max(progress.done, total)));
  return absl::StrCat(of_total(ShortNumber(static_cast<double>(progress.done) / unit.bytes),
                               ShortNumber(static_cast<double>(total) / unit.bytes)),
                      " ", unit.name);
}

std::string RateText(const Progress& progress) {
  if (!progress.per_second.has_value() || progress.unit == ProgressUnit::kMilliseconds) return "";
  if (progress.unit == ProgressUnit::kItems) {
    return absl::StrCat(ShortNumber(*progress.per_second), "/s");
  }
  const ByteUnit unit = UnitFor(*progress.per_second);
  return absl::StrCat(ShortNumber(*progress.per_second / unit.bytes), " ", unit.name, "/s");
}

std::string LeftText(const Progress& progress) {
  if (!progress.per_second.has_value() || !progress.total.has_value()) return "";
  // A job whose progress is counted in milliseconds advances by 1000 a second.
  const double rate = progress.unit == ProgressUnit::kMilliseconds ? 1000 : *progress.per_second;
  const double left = static_cast<double>(*progress.total - progress.done);
  if (left <= 0 || rate <= 0) return "";
  const double wanted = left / rate + 1;  // Rounded up: better too long than too short.
  if (wanted > 1e8) return "";
  const auto seconds = static_cast<int64_t>(wanted);
  if (seconds < 100) return absl::StrCat(seconds, " s left");
  if (seconds < 6000) return absl::StrCat(seconds / 60, " min left");
  return absl::StrFormat("%d h %02d min left", seconds / 3600, seconds / 60 % 60);
}

std::string Joined(std::vector<std::string> parts) {
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return absl::StrJoin(parts, "  ");
}

// Shortens `line` to `room` characters. If `room` is at least 3 * kEnd, the last kEnd characters
// are kept, because a notice ends with its time. Otherwise the end is cut off.
std::string Shortened(const std::string& line, size_t room) {
  constexpr size_t kEnd = 8;
  if (room < 3 * kEnd) return line.substr(0, room);
  return absl::StrCat(line.substr(0, room - kEnd - 2), "..", line.substr(line.size() - kEnd));
}

}  // namespace

std::string ProgressLine(const Progress& progress, int columns) {
  const size_t room = static_cast<size_t>(std::max(columns, 1) - 1);
  std::string percent, wide, narrow;
  if (progress.total.has_value()) {
    const int64_t done = PercentOf(progress.done, *progress.total);
    percent = absl::StrFormat(" %3d%%", done);
    wide = absl::StrCat(" ", BarText(done, kWideBar));
    narrow = absl::StrCat(" ", BarText(done, kNarrowBar));
  }
  const std::string& label = progress.label;
  const std::string head = absl::StrCat(label, percent);
  const std::string count =
      progress.total.has_value() || progress.done > 0 ? CountText(progress) : "";
  const std::string left = LeftText(progress);
  // The possible lines, from the longest to the shortest.
  std::vector<std::string> lines;
  if (!progress.notice.empty()) {
    const std::string& notice = progress.notice;
    lines = {Joined({absl::StrCat(label, wide, percent), count, notice}),
             Joined({absl::StrCat(label, narrow, percent), count, notice}),
             Joined({head, count, notice}), Joined({head, notice}), notice};
  } else {
    const std::string rate = RateText(progress);
    const std::string& remark = progress.remark;
    lines = {Joined({absl::StrCat(label, wide, percent), count, rate, left, remark}),
             Joined({absl::StrCat(label, narrow, percent), count, rate, left, remark}),
             Joined({head, count, rate, left, remark}),
             Joined({head, count, left, remark}),
             Joined({head, left, remark}),
             Joined({head, left}),
             head};
  }
  for (std::string& line : lines) {
    if (line.size() <= room) return std::move(line);
  }
  return Shortened(lines.back(), room);
}

ProgressBar::ProgressBar(const Console& console, ProgressBarOptions options)
    : console_(console), options_(std::move(options)), begun_(options_.clock()) {
  if (!console_.err_is_terminal) return;
  {
    MutexLock lock(mu_);
    progress_ = {.label = options_.label,
                 .unit = options_.unit,
                 .done = options_.done_before,
                 .total = options_.total};
    if (options_.total.has_value()) Draw();
  }
  if (options_.redraw_every == absl::InfiniteDuration()) return;
  redrawing_ = std::make_unique<WorkerPool>(1);
  redrawing_->Submit([this] { KeepDrawing(); });
}

ProgressBar::~ProgressBar() {
  if (!console_.err_is_terminal) return;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  redrawing_.reset();
  console_.err << kClearLine << std::flush;
}

void ProgressBar::Add(int64_t count, absl::string_view remark) {
  if (!console_.err_is_terminal) return;
  MutexLock lock(mu_);
  progress_.done += count;
  const bool new_remark = !remark.empty() && remark != progress_.remark;
  if (new_remark) progress_.remark = std::string(remark);
  // A bar without a known total is redrawn only by the timer.
  if (!options_.total.has_value()) return;
  if (new_remark || PercentOf(progress_.done, *options_.total) != drawn_percent_) Draw();
}

void ProgressBar::Redraw() {
  if (!console_.err_is_terminal) return;
  MutexLock lock(mu_);
  Draw();
}

void ProgressBar::KeepDrawing() {
  MutexLock lock(mu_);
  while (!stopping_) {
    if (!changed_.WaitFor(mu_, options_.redraw_every)) Draw();
  }
}

void ProgressBar::Draw() {
  if (stopping_) return;
  if (options_.total.has_value()) drawn_percent_ = PercentOf(progress_.done, *options_.total);
  const int64_t done_here = progress_.done - options_.done_before;
  const absl::Duration passed = options_.clock() - begun_;
  progress_.per_second.reset();
  if (passed >= kFirstRate && done_here > 0) {
    progress_.per_second = static_cast<double>(done_here) / absl::ToDoubleSeconds(passed);
  }
  progress_.notice = options_.notice != nullptr ? options_.notice() : "";
  Progress shown = progress_;
  if (options_.remark != nullptr) shown.remark = Joined({options_.remark(), progress_.remark});
  console_.err << kClearLine << ProgressLine(shown, console_.Columns()) << std::flush;
}

}  // namespace systole
