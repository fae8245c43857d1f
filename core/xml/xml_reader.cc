#include "core/xml/xml_reader.h"

#include <expat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// Expat takes the number of bytes as an int, so a long text is given to it in pieces.
constexpr size_t kPieceBytes = size_t{1} << 20;

struct Reading {
  const XmlBounds& bounds;
  const TakeXmlElement take;
  XML_Parser parser;
  absl::Status status = absl::OkStatus();
  std::string path = {};
  struct Open {
    size_t parent_path_bytes;
    std::string text;
  };
  std::vector<Open> open = {};

  // Keeps the first error. Expat may call some more handlers before it stops.
  void Fail(absl::Status error) {
    if (status.ok()) status = std::move(error);
    XML_StopParser(parser, XML_FALSE);
  }
};

absl::string_view LocalName(const XML_Char* name) {
  const absl::string_view whole(name);
  return whole.substr(whole.rfind(':') + 1);  // npos + 1 is 0.
}

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(" \t\r\n") == absl::string_view::npos;
}

void XMLCALL OnStart(void* data, const XML_Char* name, const XML_Char** /*attributes*/) {
  Reading& reading = *static_cast<Reading*>(data);
  if (!reading.status.ok()) return;
  if (reading.open.size() >= static_cast<size_t>(std::max(0, reading.bounds.max_depth))) {
    return reading.Fail(absl::ResourceExhaustedError(absl::StrCat(
        "the XML has more than ", reading.bounds.max_depth, " elements inside each other")));
  }
  const absl::string_view local = LocalName(name);
  if (local.size() > reading.bounds.max_text_bytes) {
    return reading.Fail(absl::ResourceExhaustedError(
        absl::StrCat("the XML has a name of more than ", reading.bounds.max_text_bytes, " bytes")));
  }
  // Blanks between elements, such as line breaks, are not the text of the element around them.
  if (!reading.open.empty() && IsBlank(reading.open.back().text)) reading.open.back().text.clear();
  reading.open.push_back({reading.path.size(), ""});
  absl::StrAppend(&reading.path, reading.path.empty() ? "" : "/", local);
}

void XMLCALL OnEnd(void* data, const XML_Char* /*name*/) {
  Reading& reading = *static_cast<Reading*>(data);
  if (!reading.status.ok()) return;
  const Reading::Open& element = reading.open.back();
  if (absl::Status taken = reading.take(reading.path, element.text); !taken.ok()) {
    return reading.Fail(std::move(taken));
  }
  reading.path.resize(element.parent_path_bytes);
  reading.open.pop_back();
}

void XMLCALL OnText(void* data, const XML_Char* text, int bytes) {
  Reading& reading = *static_cast<Reading*>(data);
  if (!reading.status.ok()) return;
  std::string& whole = reading.open.back().text;
  if (static_cast<size_t>(bytes) > reading.bounds.max_text_bytes - whole.size()) {
    return reading.Fail(absl::ResourceExhaustedError(
        absl::StrCat("the XML has a text of more than ", reading.bounds.max_text_bytes, " bytes")));
  }
  whole.append(text, static_cast<size_t>(bytes));
}

void XMLCALL OnDocumentType(void* data, const XML_Char* /*name*/, const XML_Char* /*system*/,
                            const XML_Char* /*public_id*/, int /*has_internal_subset*/) {
  static_cast<Reading*>(data)->Fail(
      absl::DataLossError("the XML has a document type (DOCTYPE), which is not allowed"));
}

int64_t ByteIndexOf(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION >= 9)
  return XML_GetCurrentByteIndex64(parser);  // Expat 2.9 warns of the older function.
#else
  return XML_GetCurrentByteIndex(parser);
#endif
}

absl::Status ErrorOf(const Reading& reading) {
  if (!reading.status.ok()) return reading.status;
  const XML_Error code = XML_GetErrorCode(reading.parser);
  if (code == XML_ERROR_NO_MEMORY) return absl::ResourceExhaustedError("no memory for the XML");
  // Expat has a fixed text for each error number, which contains nothing of the document.
  return absl::DataLossError(absl::StrCat("malformed XML at byte ", ByteIndexOf(reading.parser),
                                          " (", XML_ErrorString(code), ")"));
}

}  // namespace

absl::Status ReadXml(absl::string_view xml, TakeXmlElement take, const XmlBounds& bounds) {
  // Expat ignores the encoding that the document declares, because this call sets one.
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate("UTF-8"),
                                                                       &XML_ParserFree);
  if (parser == nullptr) return absl::ResourceExhaustedError("no memory for the XML");
  Reading reading = {.bounds = bounds, .take = take, .parser = parser.get()};
  XML_SetUserData(parser.get(), &reading);
  XML_SetElementHandler(parser.get(), &OnStart, &OnEnd);
  XML_SetCharacterDataHandler(parser.get(), &OnText);
  XML_SetStartDoctypeDeclHandler(parser.get(), &OnDocumentType);
  bool last = false;
  while (!last) {
    const absl::string_view piece = xml.substr(0, kPieceBytes);
    xml.remove_prefix(piece.size());
    last = xml.empty();
    if (XML_Parse(parser.get(), piece.data(), static_cast<int>(piece.size()), last) !=
        XML_STATUS_OK) {
      return ErrorOf(reading);
    }
  }
  return absl::OkStatus();
}

}  // namespace systole
