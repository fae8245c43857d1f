#include "client/look/example_card.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/look/tensor_summary.h"
#include "core/status/status_macros.h"
#include "core/text/markup_text.h"

namespace systole {
namespace {

// Smaller pictures are enlarged with their pixels visible, not blurred.
constexpr int kSmallPictureEdge = 128;

// "3", "0.1, 0.2, 0.7", "1, 2, .. (784 values)".
std::string ValuesText(const SliceTensor& tensor, const uint8_t* values, int64_t slot) {
  const DType dtype = tensor.spec.dtype;
  const int64_t element = DTypeBytes(dtype);
  const int64_t count = tensor.example_bytes() / element;
  std::string text;
  int64_t shown = 0;
  tensor.ForEachPiece(slot, [&](int64_t offset, int64_t bytes) {
    for (int64_t byte = 0; byte < bytes && shown < kMaxShownValues; byte += element, ++shown) {
      absl::StrAppend(&text, shown == 0 ? "" : ", ", ValueText(dtype, values + offset + byte));
    }
  });
  if (count > kMaxShownValues) absl::StrAppend(&text, ", … (", count, " values)");
  return text;
}

// "record 12", "core 0", "slot 3".
std::string WhereHtml(int core, int64_t slot, const KnownPlace& place) {
  std::string html = "<p class=\"where\">";
  if (place.record.has_value()) {
    absl::StrAppend(&html, "<span>record ", *place.record, "</span> ");
  }
  return absl::StrCat(html, "<span>core ", core, "</span> <span>slot ", slot, "</span></p>");
}

// The card of a place without an example. The card says in words why it has no example, because not
// everyone can see the card's pattern.
std::string EmptyCardHtml(int core, int64_t slot, const KnownPlace& place) {
  const char* css_class = "empty";
  const char* what = "Empty";
  const char* why = "padding, or a masked record";
  if (place.kind == PlaceKind::kPadding) {
    css_class = "padding";
    what = "Padding";
    why = "the order has no record here";
  } else if (place.kind == PlaceKind::kMasked) {
    css_class = "masked";
    what = "Masked";
    why = "the record is damaged";
  }
  return absl::StrCat("<article class=\"example missing ", css_class, "\"><div><b>", what,
                      "</b><span>", why, "</span></div>", WhereHtml(core, slot, place),
                      "</article>\n");
}

absl::StatusOr<std::string> PictureHtml(const SheetOutput& output, const uint8_t* values,
                                        int64_t slot, const KnownPlace& place, bool is_named) {
  SYSTOLE_ASSIGN_OR_RETURN(const ShownPicture picture, output.image->Picture(values, slot));
  const bool is_small = std::max(picture.width, picture.height) < kSmallPictureEdge;
  const std::string name = EscapeMarkup(output.name);
  return absl::StrCat(
      "<figure><img", is_small ? " class=\"small\"" : "", " width=\"", picture.width,
      "\" height=\"", picture.height, "\" alt=\"", name,
      place.record.has_value() ? absl::StrCat(" of record ", *place.record) : "",
      "\" src=\"data:image/jpeg;base64,", absl::Base64Escape(picture.jpeg), "\">",
      is_named ? absl::StrCat("<figcaption title=\"", name, "\">", name, "</figcaption>") : "",
      "</figure>");
}

}  // namespace

absl::StatusOr<std::string> ExampleCardHtml(const Step& step, int core, int64_t slot,
                                            const KnownPlace& place,
                                            absl::Span<const SheetOutput> outputs) {
  if (place.kind != PlaceKind::kExample) return EmptyCardHtml(core, slot, place);
  const auto num_images = std::count_if(outputs.begin(), outputs.end(),
                                        [](const SheetOutput& o) { return o.image.has_value(); });
  std::string pictures, values;
  int drawn = 0;
  for (const SheetOutput& output : outputs) {
    if (output.output == nullptr) continue;  // This is `valid`, which is 1 here.
    const uint8_t* data = step.Tensor(core, output.index).data;
    if (output.image.has_value()) {
      if (drawn++ >= kMaxPicturesOfExample) continue;
      SYSTOLE_ASSIGN_OR_RETURN(const std::string picture,
                               PictureHtml(output, data, slot, place, num_images > 1));
      pictures += picture;
      continue;
    }
    const SliceTensor& tensor = step.layout().tensors()[static_cast<size_t>(output.index)];
    absl::StrAppend(&values, "<li><span>", EscapeMarkup(output.name), "</span> <b>",
                    ValuesText(tensor, data, slot), "</b></li>");
  }
  std::string html = "<article class=\"example\">";
  if (!pictures.empty()) {
    absl::StrAppend(&html, "<div class=\"pictures", num_images > 1 ? " several" : "", "\">",
                    pictures, "</div>");
  }
  if (!values.empty()) absl::StrAppend(&html, "<ul class=\"values\">", values, "</ul>");
  return absl::StrCat(html, WhereHtml(core, slot, place), "</article>\n");
}

}  // namespace systole
