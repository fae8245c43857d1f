#include "client/cli/commands/damaged_records.h"

#include "core/status/foreign_text.h"

namespace systole {

void PrintDamagedRecords(const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                         std::ostream& out) {
  for (const v1::DamagedRecord& record : records) {
    out << "    shard '" << ForeignName(record.shard()) << "', offset " << record.offset()
        << " (record_id " << record.record() << "): " << ForeignText(record.cause()) << "\n";
  }
}

void AppendDamagedRecords(const google::protobuf::RepeatedPtrField<v1::DamagedRecord>& records,
                          JsonWriter& json) {
  json.Key("damaged_records").BeginArray();
  for (const v1::DamagedRecord& record : records) {
    json.BeginObject().Field("shard", ForeignName(record.shard()));
    json.Field("record", record.record()).Field("offset", record.offset());
    json.Field("cause", ForeignText(record.cause())).EndObject();
  }
  json.EndArray();
}

}  // namespace systole
