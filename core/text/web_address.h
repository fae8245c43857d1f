// Addresses of the web and names in buckets, as messages may show them. An address may hold
// secrets, such as a password before the host or a signature in the query.
//   https://host/dir/a.tfrecord?sig=secret   is shown as  https://host/dir/a.tfrecord
//   https://user:secret@host/dir/a.tfrecord  is shown as  https://...@host/dir/a.tfrecord
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_WEB_ADDRESS_H_
#define SYSTOLE_CORE_TEXT_WEB_ADDRESS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// Whether `name` was meant as an address of the web: it begins with "http:" or "https:", in any
// case of letters, perhaps after blanks or quotes. Such a name may hold secrets even if it is
// malformed.
bool IsWebAddress(absl::string_view name);

// Whether `name` begins like the name of an object in a bucket: "s3://" or "gs://".
bool IsBucketName(absl::string_view name);

// Whether secrets may be in `name`. If so, messages may show only ShownAddress(). True for each
// address of the web, and for each malformed name in a bucket, because a user may have written keys
// before the bucket (s3://ID:SECRET@bucket/a).
bool MayHoldSecrets(absl::string_view name);

// `address` without user name, password, query and fragment. Takes any text, with any scheme or
// none. A '/', '?' or '#' in a password should be percent-encoded, but many people do not know
// this. So everything before the last '@' is shown as "...", even if that '@' seems to be in a
// path. If an '@' stands after a '?' or '#', and the text is not a valid address, only the scheme
// is shown, and then "...". The result is not escaped (see ForeignText).
std::string ShownAddress(absl::string_view address);

// The name of the object: the part of `address` after the last '/' of its path, as a view into
// `address`. Empty for a folder; the host if there is no path. If ShownAddress() leaves out a part
// of the name because the address is malformed, the result leaves out this part, too.
absl::string_view AddressBaseName(absl::string_view address);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_WEB_ADDRESS_H_
