// Names of a spec's fields and values as a person writes them, for messages.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_SPEC_TEXT_H_
#define SYSTOLE_CORE_PLAN_SPEC_TEXT_H_

#include <string>

#include "google/protobuf/descriptor.h"

namespace systole {

// "DROP or PAD".
std::string EnumValues(const google::protobuf::EnumDescriptor& type);

// "PAD", or "99" for a value that has no name.
std::string EnumText(const google::protobuf::EnumDescriptor& type, int value);

// "decode_jpeg, decode_raw, ..".
std::string FieldNames(const google::protobuf::Descriptor& type);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_SPEC_TEXT_H_
