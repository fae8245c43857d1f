#!/usr/bin/env bash
# Reads shards from two servers of other projects: versitygw (S3) and fake-gcs-server (Cloud Storage).
# Also packs shards into versitygw.
#
#   tests/client/python/bucket_servers.sh [PYTEST ARGUMENT..]
#
# Builds the servers in build/bucket-servers. This needs Go 1.24 or newer; Debian 12's own is too old.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
if ! command -v go >/dev/null; then
  echo "$0: there is no go; install Go 1.24 or newer" >&2
  exit 3
fi
export GOBIN=$PWD/build/bucket-servers
go install github.com/versity/versitygw/cmd/versitygw@v1.0.14 </dev/null
go install github.com/fsouza/fake-gcs-server@v1.52.2 </dev/null
"$here/install.sh" buckets
exec build/python/buckets/env/bin/python -m pytest -q -p no:cacheprovider --rootdir "$here" \
  "$here/with_bucket_servers" "$@" </dev/null
