#include "client/cli/progress_bar.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace systole {
namespace {

constexpr int kBarColumns = 30;
// Back to the first column, and blank to the end of the line.
constexpr char kClearLine[] = "\r\x1b[K";

int64_t Percent(int64_t done, int64_t total) {
  return total <= 0 ? 100 : std::min<int64_t>(100, done * 100 / total);
}

}  // namespace

ProgressBar::ProgressBar(std::ostream& out, bool enabled, absl::string_view label, int64_t total)
    : out_(out), enabled_(enabled), label_(label), total_(total) {
  MutexLock lock(mu_);
  if (enabled_) Draw();
}

ProgressBar::~ProgressBar() {
  MutexLock lock(mu_);
  if (enabled_) out_ << kClearLine << std::flush;
}

void ProgressBar::Add(int64_t count, absl::string_view remark) {
  if (!enabled_) return;
  MutexLock lock(mu_);
  done_ += count;
  const bool new_remark = !remark.empty() && remark != remark_;
  if (new_remark) remark_ = std::string(remark);
  if (new_remark || Percent(done_, total_) != drawn_percent_) Draw();
}

void ProgressBar::Draw() {
  drawn_percent_ = Percent(done_, total_);
  const int filled = static_cast<int>(drawn_percent_ * kBarColumns / 100);
  std::string bar(filled, '=');
  if (filled < kBarColumns) bar += '>';
  bar.resize(kBarColumns, ' ');
  out_ << kClearLine
       << absl::StrFormat("%s [%s] %3d%%  %d/%d", label_, bar, drawn_percent_, done_, total_)
       << (remark_.empty() ? "" : "  ") << remark_ << std::flush;
}

}  // namespace systole
