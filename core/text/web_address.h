// Addresses of the web and names of buckets, as messages may show them. An address may hold
// secrets: a password before the host, a signature in the query.
//   https://host/dir/a.tfrecord?sig=secret   is shown as  https://host/dir/a.tfrecord
//   https://user:secret@host/dir/a.tfrecord  is shown as  https://...@host/dir/a.tfrecord
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_WEB_ADDRESS_H_
#define SYSTOLE_CORE_TEXT_WEB_ADDRESS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// Whether `name` was meant as an address of the web: it begins with "http:" or "https:" in any case
// of letters, after blanks or quotes if need be. Even if `name` is malformed, it may hold secrets.
bool IsWebAddress(absl::string_view name);

// Whether `name` begins like the name of an object in a bucket: "s3://" or "gs://".
bool IsBucketName(absl::string_view name);

// Whether secrets may be in `name`, so that only ShownAddress() may be shown of it. That is so for
// each address of the web, and for the name of a bucket that can be none: the keys that let its
// reader in may have been written before it (s3://ID:SECRET@bucket/a).
bool MayHoldSecrets(absl::string_view name);

// `address` without user name, password, query and fragment. Takes any text; the scheme may be any,
// or missing. A '/', '?' or '#' in a password should be percent-encoded, but people do not know
// that. So everything before the last '@' is shown as "...", even if that '@' seems to be in a
// path. If the '@' stands after a '?' or '#', and the text is no address that can be asked for,
// only the scheme is shown. The result is not escaped (see ForeignText).
std::string ShownAddress(absl::string_view address);

// The name of the object: the part of `address` after the last '/' of its path, as a view into
// `address`. Empty for a folder; the host if there is no path. If no server can be asked for the
// address, the result has no more than ShownAddress() shows.
absl::string_view AddressBaseName(absl::string_view address);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_WEB_ADDRESS_H_
