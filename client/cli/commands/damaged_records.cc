#include "client/cli/commands/damaged_records.h"

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {

void PrintDamagedRecords(const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                         std::ostream& out) {
  for (const v1::DamagedRecord& record : records) {
    out << "    shard '" << ForeignName(record.shard()) << "', offset " << record.offset()
        << " (record_id " << record.record() << "): " << ForeignText(record.cause()) << "\n";
  }
}

std::string FoundWhileIndexing(int64_t num_damaged) {
  return num_damaged == 1
             ? "1 damaged stretch was found while indexing, of 1 record or more"
             : absl::StrCat(
                   num_damaged,
                   " damaged stretches were found while indexing, each of 1 record or more");
}

std::string MetWhileReading(int64_t masked_examples, int num_records) {
  return absl::StrCat("met while reading: ", masked_examples,
                      masked_examples == 1 ? " example" : " examples", " masked; ",
                      num_records == 1 ? "the damaged record:" : "the first damaged records:");
}

void AppendDamagedRecords(absl::string_view key,
                          const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                          JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const v1::DamagedRecord& record : records) {
    json.BeginObject().Field("shard", ForeignName(record.shard()));
    json.Field("record", record.record()).Field("offset", record.offset());
    json.Field("cause", ForeignText(record.cause())).EndObject();
  }
  json.EndArray();
}

}  // namespace systole
