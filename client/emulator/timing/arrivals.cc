#include "client/emulator/timing/arrivals.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr int kMaxCores = 65536;
constexpr size_t kMaxName = 128;
constexpr size_t kMaxOriginText = 64 << 10;
constexpr size_t kMaxRank = 8;
constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;
constexpr int64_t kMaxStep = int64_t{1} << 60;
// The largest time that a recording may have: about three years. This keeps sums of times from
// overflowing.
constexpr int64_t kMaxNs = 100'000'000'000'000'000;

absl::Status CheckTensor(const ArrivalTensor& tensor) {
  const auto wrong = [&tensor](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", absl::CEscape(tensor.name.substr(0, 40)), "': ", what));
  };
  if (tensor.name.empty() || tensor.name.size() > kMaxName) {
    return wrong(absl::StrCat("a name of ", tensor.name.size(), " bytes, want 1 to ", kMaxName));
  }
  if (tensor.shape.empty() || tensor.shape.size() > kMaxRank) {
    return wrong(absl::StrCat(tensor.shape.size(), " dimensions, want 1 to ", kMaxRank));
  }
  if (tensor.batch_axis < 0 || tensor.batch_axis >= static_cast<int>(tensor.shape.size())) {
    return wrong(absl::StrCat("batch_axis ", tensor.batch_axis, ", want one of its ",
                              tensor.shape.size(), " dimensions, from 0"));
  }
  int64_t bytes = DTypeBytes(tensor.dtype);
  for (const int64_t dimension : tensor.shape) {
    if (dimension < 1 || dimension > kMaxTensorBytes / bytes) {
      return wrong(absl::StrCat("a dimension of ", dimension, ", want 1 or more, and at most ",
                                kMaxTensorBytes, " bytes in all"));
    }
    bytes *= dimension;
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const std::vector<ArrivalTensor>& tensors) {
  if (tensors.empty() || tensors.size() > kMaxSliceTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensors.size(), " tensors, want 1 to ", kMaxSliceTensors));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    SYSTOLE_RETURN_IF_ERROR(CheckTensor(tensors[i]));
    const std::string& name = tensors[i].name;
    if (tensors[i].per_core_batch() != tensors[0].per_core_batch()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", absl::CEscape(name), "' holds ", tensors[i].per_core_batch(),
          " examples, the first one ", tensors[0].per_core_batch(), "; want the same"));
    }
    const auto is_same = [&name](const ArrivalTensor& other) { return other.name == name; };
    if (std::any_of(tensors.begin(), tensors.begin() + static_cast<int64_t>(i), is_same)) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are named '", absl::CEscape(name), "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOrigin(const FeedOrigin& origin) {
  for (const std::string* text :
       {&origin.dataset, &origin.spec, &origin.servers, &origin.content_version, &origin.date}) {
    if (text->size() <= kMaxOriginText) continue;
    return absl::InvalidArgumentError(absl::StrCat("a text of the feed's origin has ", text->size(),
                                                   " bytes, want at most ", kMaxOriginText));
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(const Arrivals& arrivals) {
  const auto cores = static_cast<size_t>(arrivals.num_cores);
  const std::vector<int64_t>& ns = arrivals.ns;
  if (static_cast<int64_t>(ns.size()) > kMaxArrivalTimes || ns.size() % cores != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(ns.size(), " times, want one for each core and step, and at most ",
                     kMaxArrivalTimes, ": record fewer steps"));
  }
  for (size_t i = 0; i < ns.size(); ++i) {
    const int64_t least = i < cores ? 0 : ns[i - cores];
    if (ns[i] >= least && ns[i] <= kMaxNs) continue;
    return absl::InvalidArgumentError(absl::StrCat("step ", i / cores, ", core ", i % cores,
                                                   ": ns is ", ns[i], ", want ", least, " to ",
                                                   kMaxNs));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int64_t> ArrivalTensor::example() const {
  std::vector<int64_t> sizes = shape;
  sizes.erase(sizes.begin() + batch_axis);
  return sizes;
}

absl::Status CheckArrivals(const Arrivals& arrivals) {
  SYSTOLE_RETURN_IF_ERROR(CheckOrigin(arrivals.origin));
  SYSTOLE_RETURN_IF_ERROR(CheckTensors(arrivals.tensors));
  if (arrivals.first_step < 0 || arrivals.first_step > kMaxStep) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_step is ", arrivals.first_step, ", want 0 to ", kMaxStep));
  }
  if (arrivals.num_cores < 1 || arrivals.num_cores > kMaxCores) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_cores is ", arrivals.num_cores, ", want 1 to ", kMaxCores));
  }
  return CheckTimes(arrivals);
}

}  // namespace systole::emulator
