// Reads short XML documents that servers send. Expat does the parsing.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_XML_XML_READER_H_
#define SYSTOLE_CORE_XML_XML_READER_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

// The limits of a document. A server may send any document.
struct XmlBounds {
  // The most elements nested in one another. Each element takes a little memory until its end.
  int max_depth = 16;
  // The most bytes of one element's own text, and of one element's name.
  size_t max_text_bytes = 8192;
};

// Called at the end of each element. `path` has the names of the elements around this element, and
// then this element's name, with '/' between them: "List/Item/Name". `text` is this element's own
// text, without the text of elements inside it, in UTF-8. Both arguments are valid during the call.
// An error ends the reading.
using TakeXmlElement =
    absl::FunctionRef<absl::Status(absl::string_view path, absl::string_view text)>;

// Reads a whole document. Names are taken without the prefixes of their namespaces. Attributes,
// comments and processing instructions are skipped. A document with a document type (DOCTYPE) is
// refused, because it could define entities that grow to any size or that name files. So a document
// can use only the five entities that XML itself defines, such as `&lt;`.
//   DataLoss            the text is not XML, is cut short, or has a document type.
//   ResourceExhausted   the document has more than `bounds` allow, or there is no memory.
//   The first error of `take`.
absl::Status ReadXml(absl::string_view xml, TakeXmlElement take, const XmlBounds& bounds = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_XML_XML_READER_H_
