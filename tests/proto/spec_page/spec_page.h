// Makes proto/SPEC.md, the reference of the feed spec, from feed.proto's comments and the table of
// operations.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_PROTO_SPEC_PAGE_SPEC_PAGE_H_
#define SYSTOLE_TESTS_PROTO_SPEC_PAGE_SPEC_PAGE_H_

#include <string>

#include "google/protobuf/descriptor.h"

namespace systole {

// An example of a field in a spec, such as "epochs: 90". Empty if there is none.
std::string ExampleOf(const google::protobuf::FieldDescriptor& field);

// `feed` is feed.proto with its comments (protoc --include_source_info).
std::string SpecPage(const google::protobuf::FileDescriptor& feed);

}  // namespace systole

#endif  // SYSTOLE_TESTS_PROTO_SPEC_PAGE_SPEC_PAGE_H_
