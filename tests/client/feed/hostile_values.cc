#include "tests/client/feed/hostile_values.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"
#include "google/protobuf/descriptor.h"

namespace systole {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMoreElements = 5'000;

// A place in a message: the fields that lead to it, each with the number of its element (-1: the
// field is no list).
using Path = std::vector<std::pair<const FieldDescriptor*, int>>;

std::string NameOf(const Path& path) {
  std::string name;
  for (const auto& [field, index] : path) {
    absl::StrAppend(&name, name.empty() ? "" : ".", field->name());
    if (index >= 0) absl::StrAppend(&name, "[", index, "]");
  }
  return name;
}

// The message that holds the last field of `path`.
Message& HolderOf(const Path& path, Message& message) {
  Message* holder = &message;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    const auto& [field, index] = path[i];
    const Reflection& reflection = *holder->GetReflection();
    holder = index >= 0 ? reflection.MutableRepeatedMessage(holder, field, index)
                        : reflection.MutableMessage(holder, field);
  }
  return *holder;
}

// Calls SetRepeatedX or SetX.
template <typename Value>
void Set(const Path& path, Message& message, const Value& value,
         void (Reflection::*one)(Message*, const FieldDescriptor*, Value) const,
         void (Reflection::*element)(Message*, const FieldDescriptor*, int, Value) const) {
  Message& holder = HolderOf(path, message);
  const auto& [field, index] = path.back();
  if (index >= 0) {
    (holder.GetReflection()->*element)(&holder, field, index, value);
  } else {
    (holder.GetReflection()->*one)(&holder, field, value);
  }
}

template <typename Value>
void AddNumbers(const Path& path, std::vector<Value> values,
                void (Reflection::*one)(Message*, const FieldDescriptor*, Value) const,
                void (Reflection::*element)(Message*, const FieldDescriptor*, int, Value) const,
                std::vector<Mutation>& mutations) {
  for (const Value value : values) {
    mutations.push_back({absl::StrCat(NameOf(path), " = ", value),
                         [=](Message& message) { Set(path, message, value, one, element); }});
  }
}

template <typename Int>
std::vector<Int> Ints() {
  using Limits = std::numeric_limits<Int>;
  return {0,
          1,
          static_cast<Int>(-1),
          200,
          Limits::min(),
          Limits::max(),
          static_cast<Int>(Limits::max() / 2 + 1)};
}

template <typename Float>
std::vector<Float> Floats() {
  using Limits = std::numeric_limits<Float>;
  return {0, -1, Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max()};
}

void AddTexts(const Path& path, std::vector<Mutation>& mutations) {
  const std::string texts[] = {"",
                               "a\nb\r\tc",
                               "\x1b[2J\x1b]0;title\x07",
                               "\xe2\x80\xae"
                               "detrevni",
                               std::string(201, 'v'),
                               std::string(300 << 10, '\n'),
                               std::string(3 << 20, 'x')};
  for (const std::string& text : texts) {
    mutations.push_back(
        {absl::StrCat(NameOf(path), " = ", text.size(), " bytes"), [path, text](Message& message) {
           Set<std::string>(path, message, text, &Reflection::SetString,
                            &Reflection::SetRepeatedString);
         }});
  }
}

void AddFields(const Message& message, const Path& path, std::vector<Mutation>& mutations);

void AddPlace(const Message& message, const Path& path, std::vector<Mutation>& mutations) {
  const auto& [field, index] = path.back();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return AddNumbers<int32_t>(path, Ints<int32_t>(), &Reflection::SetInt32,
                                 &Reflection::SetRepeatedInt32, mutations);
    case FieldDescriptor::CPPTYPE_INT64:
      return AddNumbers<int64_t>(path, Ints<int64_t>(), &Reflection::SetInt64,
                                 &Reflection::SetRepeatedInt64, mutations);
    case FieldDescriptor::CPPTYPE_UINT32:
      return AddNumbers<uint32_t>(path, Ints<uint32_t>(), &Reflection::SetUInt32,
                                  &Reflection::SetRepeatedUInt32, mutations);
    case FieldDescriptor::CPPTYPE_UINT64:
      return AddNumbers<uint64_t>(path, Ints<uint64_t>(), &Reflection::SetUInt64,
                                  &Reflection::SetRepeatedUInt64, mutations);
    case FieldDescriptor::CPPTYPE_ENUM:
      return AddNumbers<int>(path, Ints<int>(), &Reflection::SetEnumValue,
                             &Reflection::SetRepeatedEnumValue, mutations);
    case FieldDescriptor::CPPTYPE_BOOL:
      return AddNumbers<bool>(path, {false, true}, &Reflection::SetBool,
                              &Reflection::SetRepeatedBool, mutations);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return AddNumbers<double>(path, Floats<double>(), &Reflection::SetDouble,
                                &Reflection::SetRepeatedDouble, mutations);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return AddNumbers<float>(path, Floats<float>(), &Reflection::SetFloat,
                               &Reflection::SetRepeatedFloat, mutations);
    case FieldDescriptor::CPPTYPE_STRING:
      return AddTexts(path, mutations);
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const Reflection& reflection = *message.GetReflection();
      mutations.push_back({absl::StrCat(NameOf(path), " = empty"), [path](Message& changed) {
                             Message& holder = HolderOf(path, changed);
                             const auto& [last, element] = path.back();
                             const Reflection& of = *holder.GetReflection();
                             (element >= 0 ? of.MutableRepeatedMessage(&holder, last, element)
                                           : of.MutableMessage(&holder, last))
                                 ->Clear();
                           }});
      return AddFields(index >= 0 ? reflection.GetRepeatedMessage(message, field, index)
                                  : reflection.GetMessage(message, field),
                       path, mutations);
    }
    default:
      mutations.push_back({absl::StrCat(NameOf(path), ": a type that this test does not know"),
                           [](Message&) { std::abort(); }});
  }
}

void AddList(const Path& path, std::vector<Mutation>& mutations) {
  mutations.push_back({absl::StrCat(NameOf(path), " = none"), [path](Message& message) {
                         Message& holder = HolderOf(path, message);
                         holder.GetReflection()->ClearField(&holder, path.back().first);
                       }});
  mutations.push_back({absl::StrCat(NameOf(path), " = many"), [path](Message& message) {
                         Message& holder = HolderOf(path, message);
                         const FieldDescriptor* const field = path.back().first;
                         const Reflection& reflection = *holder.GetReflection();
                         for (int i = 0; i < kMoreElements; ++i) {
                           if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
                             const int last = reflection.FieldSize(holder, field) - 1;
                             const auto& of = reflection.GetRepeatedMessage(holder, field, last);
                             reflection.AddMessage(&holder, field)->CopyFrom(of);
                           } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
                             reflection.AddInt64(&holder, field, 1);
                           } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
                             reflection.AddFloat(&holder, field, 1);
                           } else {
                             std::abort();  // The messages have no list of this kind.
                           }
                         }
                       }});
}

void AddFields(const Message& message, const Path& path, std::vector<Mutation>& mutations) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message.GetDescriptor()->field(i);
    Path place = path;
    place.emplace_back(field, -1);
    if (!field->is_repeated()) {
      AddPlace(message, place, mutations);
      continue;
    }
    const int size = message.GetReflection()->FieldSize(message, field);
    if (size > 0) AddList(place, mutations);
    for (int element = 0; element < size; ++element) {
      place.back().second = element;
      AddPlace(message, place, mutations);
    }
  }
}

}  // namespace

std::vector<Mutation> MutationsOf(const Message& example) {
  std::vector<Mutation> mutations;
  AddFields(example, {}, mutations);
  return mutations;
}

void FillEveryField(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message.GetDescriptor()->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      FillEveryField(field->is_repeated() ? *reflection.AddMessage(&message, field)
                                          : *reflection.MutableMessage(&message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection.SetString(&message, field, "name");
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      reflection.SetInt64(&message, field, 1);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      reflection.SetInt32(&message, field, 1);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      reflection.SetUInt64(&message, field, 1);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      reflection.SetDouble(&message, field, 1);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      reflection.SetBool(&message, field, true);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      reflection.SetEnumValue(&message, field, 1);
    } else {
      std::abort();  // The messages have no field of this kind.
    }
  }
}

bool IsFitToPrint(absl::string_view text) {
  return text.size() <= 4096 && ForeignText(text, 1 << 20) == text;
}

std::string FirstUnfit(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const auto unfit = [field](double value) {
      return value >= 0 && value <= std::ldexp(1, 60) ? std::string() : field->full_name();
    };
    std::string found;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        if (!IsFitToPrint(reflection.GetString(message, field))) found = field->full_name();
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        found = unfit(reflection.GetInt32(message, field));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        found = unfit(static_cast<double>(reflection.GetInt64(message, field)));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        found = unfit(reflection.GetDouble(message, field));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        for (int i = 0;
             found.empty() && i < (field->is_repeated() ? reflection.FieldSize(message, field) : 1);
             ++i) {
          found = FirstUnfit(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                  : reflection.GetMessage(message, field));
        }
        break;
      default:
        break;
    }
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace systole
