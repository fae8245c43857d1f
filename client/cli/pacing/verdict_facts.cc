#include "client/cli/pacing/verdict_facts.h"

#include <string>

namespace systole {

std::vector<emulator::Fact> VerdictFacts(const FeedVerdict& verdict, const SliceLayout& layout,
                                         const v1::FeedSpec& spec) {
  return {{"limit", "What limits the feed", std::string(LimitName(verdict.limit))},
          {"limit_output", "The output that costs most", OutputName(verdict, layout)},
          {"limit_operation", "Its operation that costs most",
           CostliestOperation(verdict, layout, spec)},
          {"limit_share", "Part of the waits that the limit caused", verdict.share,
           emulator::Unit::kFraction},
          {"wait_share", "Part of the time in which the trainer waited", verdict.waits,
           emulator::Unit::kFraction}};
}

}  // namespace systole
