// Reads any bytes as a record of a zip, and as the payloads of its members. An accepted record
// has the features of all members. A feature's name is the prefix of its member, followed by the
// name in the member's payload. The payloads lie within the record.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_format.h"
#include "core/example/tensorflow_example.h"
#include "core/memory/little_endian.h"
#include "core/record/zip/zip_format.h"
#include "core/record/zip/zip_names.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

namespace systole {
namespace {

constexpr size_t kMembers = 2;

bool IsWithin(absl::string_view part, absl::string_view whole) {
  const std::less_equal<const char*> before;
  return before(whole.data(), part.data()) &&
         before(part.data() + part.size(), whole.data() + whole.size());
}

std::vector<std::string> NamesIn(const ExampleFormat& format, absl::string_view record,
                                 absl::string_view prefix, bool& good) {
  MadeText made;
  std::vector<std::string> names;
  good = format
             .Decode(record, made,
                     [&](const FeatureView& feature) {
                       names.push_back(absl::StrCat(prefix, feature.name()));
                     })
             .ok();
  return names;
}

}  // namespace
}  // namespace systole

SYSTOLE_FUZZER(zip_record, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto names = std::make_shared<const ZipNames>(
      std::vector<ZipNamesOfMember>{{.dataset = "a", .prefix = "", .features = {}},
                                    {.dataset = "b", .prefix = "b/", .features = {"label"}}});
  const ZipFormat format({&TensorFlowExample(), &TensorFlowExample()}, names);
  std::vector<absl::string_view> payloads(kMembers);
  if (SplitZip(bytes, absl::MakeSpan(payloads)).ok()) {
    size_t sum = ZipHeaderBytes(kMembers);
    for (const absl::string_view payload : payloads) {
      SYSTOLE_CHECK(payload.empty() || IsWithin(payload, bytes));
      sum += payload.size();
    }
    SYSTOLE_CHECK(sum == size);
  }
  bool good = false;
  NamesIn(format, bytes, "", good);

  // The first byte says where the rest is cut into two payloads.
  if (size == 0) return 0;
  const absl::string_view rest = bytes.substr(1);
  const size_t cut = rest.size() * data[0] / 255;
  std::string joined(ZipHeaderBytes(kMembers), '\0');
  StoreU64Le(cut, joined.data());
  StoreU64Le(rest.size() - cut, joined.data() + 8);
  absl::StrAppend(&joined, rest);
  bool first = false;
  bool second = false;
  std::vector<std::string> want = NamesIn(TensorFlowExample(), rest.substr(0, cut), "", first);
  for (std::string& name : NamesIn(TensorFlowExample(), rest.substr(cut), "b/", second)) {
    want.push_back(std::move(name));
  }
  const std::vector<std::string> got = NamesIn(format, joined, "", good);
  SYSTOLE_CHECK(good == (first && second));
  SYSTOLE_CHECK(!good || got == want);
  return 0;
}
