// Takes pages of contact sheets apart for tests.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CLIENT_LOOK_SHEET_PAGE_H_
#define SYSTOLE_TESTS_CLIENT_LOOK_SHEET_PAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/look/contact_sheet.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/order/order.h"
#include "core/spec/order_spec.h"
#include "gtest/gtest.h"
#include "tests/client/look/sheet_steps.h"
#include "tests/status_matchers.h"

namespace systole {

// A spec of 8 examples a step on 2 cores, as in a default SheetFeed.
inline std::string SpecText(const std::string& outputs, const std::string& more = "") {
  return absl::StrCat("dataset: 'flowers' epochs: 1 global_batch: 8 num_cores: 2 ", more, " ",
                      outputs);
}

// The page; empty, with a failure noted, if it cannot be made.
inline std::string MustRender(const v1::FeedSpec& spec, const std::vector<Step>& steps,
                              const ContactSheetOptions& options = {}) {
  absl::StatusOr<std::string> page = ContactSheet(spec, steps, options);
  EXPECT_THAT(page, IsOk());
  return page.ok() ? *page : "";
}

// The texts between each `begin` and the `end` after it.
inline std::vector<std::string> AllBetween(const std::string& text, const std::string& begin,
                                           const std::string& end) {
  std::vector<std::string> found;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

struct DecodedPicture {
  int height = 0, width = 0, components = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
};

inline std::vector<DecodedPicture> PicturesOf(const std::string& page) {
  std::vector<DecodedPicture> pictures;
  for (const std::string& base64 : AllBetween(page, "src=\"data:image/jpeg;base64,", "\"")) {
    std::string jpeg;
    EXPECT_TRUE(absl::Base64Unescape(base64, &jpeg));
    absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
    EXPECT_THAT(decoder, IsOk());
    const absl::StatusOr<ImageInfo> info = decoder->ReadHeader(jpeg);
    EXPECT_THAT(info, IsOk());
    DecodedPicture picture = {info->height, info->width, info->components};
    picture.pixels.resize(static_cast<size_t>(info->height) * info->width * 3);
    EXPECT_THAT(decoder->Decode({.height = info->height, .width = info->width},
                                absl::MakeSpan(picture.pixels)),
                IsOk());
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

// The cells of the table's row for `output`: type, shape, layout, minimum, maximum, mean, ..
inline std::vector<std::string> RowOf(const std::string& page, const std::string& output) {
  const std::vector<std::string> rows =
      AllBetween(page, absl::StrCat("<th scope=\"row\">", output, "<small>"), "</tr>");
  if (rows.size() != 1) return {};
  std::vector<std::string> cells;
  for (const std::string& cell : AllBetween(rows[0], "<td", "</td>")) {
    cells.push_back(cell.substr(cell.find('>') + 1));
  }
  return cells;
}

inline std::vector<std::string> CardsOf(const std::string& page) {
  return AllBetween(page, "<article class=\"", "</article>");
}

// Leaves a pixel unchanged, for BlocksTensor().
inline double AsItIs(uint8_t pixel, int64_t) { return pixel; }

// The order that `spec` gives to `num_records` records.
inline std::optional<Order> OrderOf(const v1::FeedSpec& spec, int64_t num_records) {
  const absl::StatusOr<OrderSpec> order = OrderSpecOf(spec, {{.num_records = num_records}});
  EXPECT_THAT(order, IsOk());
  const absl::StatusOr<Order> made = Order::Create(*order);
  EXPECT_THAT(made, IsOk());
  return made.ok() ? std::optional<Order>(*made) : std::nullopt;
}

inline constexpr char kDecode[] =
    "transforms { decode_jpeg {} } transforms { resize { height: 16 width: 24 } }";
inline constexpr char kGreyDecode[] =
    "transforms { decode_jpeg { channels: 1 } } transforms { resize { height: 16 width: 24 } }";

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_LOOK_SHEET_PAGE_H_
