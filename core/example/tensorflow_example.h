// tf.train.Example (serialised protobuf) as a format of records:
//   Example  { Features features = 1; }
//   Features { map<string, Feature> feature = 1; }
//   Feature  { oneof { BytesList bytes_list = 1; FloatList float_list = 2;
//                      Int64List int64_list = 3; } }
//   *List    { repeated value = 1; }   floats and int64s packed or not, even mixed
//
// Accepts exactly the byte strings that protobuf accepts and sees the values that protobuf sees.
// The last entry with a key wins, and the last kind in a Feature wins. Lists of one kind are joined
// if they directly follow each other. Unknown fields are skipped. A name may be any bytes. A
// differential fuzzer compares this parser with protobuf.
//
// Parsing checks all features, even those that the caller does not want. So a record is either good
// for all readers or bad for all. Parsing allocates nothing, does not recurse, and takes O(bytes).
// Parsing does not look into the content of bytes values.
//
// Errors are DataLoss and name the byte offset in the record.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_EXAMPLE_TENSORFLOW_EXAMPLE_H_
#define SYSTOLE_CORE_EXAMPLE_TENSORFLOW_EXAMPLE_H_

#include "core/example/example_format.h"

namespace systole {

const ExampleFormat& TensorFlowExample();

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_TENSORFLOW_EXAMPLE_H_
