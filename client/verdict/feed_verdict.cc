#include "client/verdict/feed_verdict.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/spec/transform_name.h"

namespace systole {
namespace {

// "12 %". Small parts have a digit more, so that they are not 0.
std::string Percent(double part) {
  return absl::StrFormat("%.*f %%", part < 0.01 ? 1 : 0, 100 * part);
}

// "decode (output image, operation decode_jpeg)". Leaves out what is not known.
std::string LimitText(const FeedVerdict& verdict, const SliceLayout& layout,
                      const v1::FeedSpec& spec) {
  const std::string output = OutputName(verdict, layout);
  const std::string operation = CostliestOperation(verdict, layout, spec);
  return absl::StrCat(LimitName(verdict.limit), output.empty() ? "" : " (output ", output,
                      operation.empty() ? "" : ", operation ", operation,
                      output.empty() ? "" : ")");
}

}  // namespace

double WaitTimes::all_waited() const { return std::accumulate(waited.begin(), waited.end(), 0.0); }

std::string OutputName(const FeedVerdict& verdict, const SliceLayout& layout) {
  const auto output = static_cast<size_t>(verdict.output);
  if (verdict.output < 0 || output >= layout.tensors().size()) return "";
  return layout.tensors()[output].spec.name;
}

std::string CostliestOperation(const FeedVerdict& verdict, const SliceLayout& layout,
                               const v1::FeedSpec& spec) {
  const std::string output = OutputName(verdict, layout);
  return output.empty() ? "" : TransformName(spec, output, verdict.operation);
}

std::string VerdictText(const FeedVerdict& verdict, const SliceLayout& layout,
                        const v1::FeedSpec& spec) {
  const std::string waited =
      absl::StrCat("The trainer waited ", Percent(verdict.waits), " of the time: ");
  const std::string of_that = absl::StrCat(waited, Percent(verdict.share), " of that for ");
  switch (verdict.limit) {
    case FeedLimit::kUnknown:
      if (verdict.share == 0) return "";
      return absl::StrCat(of_that, "servers of an older release, which do not say why.");
    case FeedLimit::kStorage:
    case FeedLimit::kWire:
    case FeedLimit::kClient:
    case FeedLimit::kDecode:
      return absl::StrCat(of_that, LimitText(verdict, layout, spec), ".");
    case FeedLimit::kTrainer:
      return absl::StrCat(waited, "steps were ready before the trainer asked for them.");
    case FeedLimit::kNothing:
      return absl::StrCat(waited, "the feed just kept up.");
  }
  return "";
}

std::string VerdictRemark(const FeedVerdict& verdict, const SliceLayout& layout,
                          const v1::FeedSpec& spec) {
  if (verdict.share == 0) return "";
  const bool unknown = verdict.limit == FeedLimit::kUnknown;
  return absl::StrCat("waits ", Percent(verdict.waits), " for ",
                      unknown ? "servers" : LimitText(verdict, layout, spec));
}

}  // namespace systole
