#include "client/emulator/report/feed_facts.h"

#include <string>

#include "absl/strings/str_format.h"

namespace systole::emulator {

std::vector<Fact> FactsOf(const FeedOrigin& origin) {
  std::vector<Fact> facts;
  const auto add = [&facts](const char* key, const char* label, const std::string& text) {
    if (!text.empty()) facts.push_back({key, label, text});
  };
  add("dataset", "Dataset", origin.dataset);
  add("spec", "Feed spec", origin.spec);
  if (origin.spec_fingerprint != 0) {
    add("spec_fingerprint", "Fingerprint of the spec",
        absl::StrFormat("%016x", origin.spec_fingerprint));
  }
  add("servers", "Servers", origin.servers);
  add("content_version", "Content version", origin.content_version);
  add("date", "Date", origin.date);
  return facts;
}

}  // namespace systole::emulator
