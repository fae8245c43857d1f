#!/bin/bash
# Makes the certificates for TLS between servers and clients, for a trial or a closed network.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/make_certificates.sh DIR [HOST..]

Writes into DIR, which is created if it is missing:
  ca.pem      ca.key       the authority that both sides trust; keep ca.key away from servers
  server.pem  server.key   for localhost, 127.0.0.1, ::1 and each HOST (a name or an IPv4 address)
  client.pem  client.key   for a client, named "client"
All are valid for a year. A second run keeps the authority and makes the other two pairs anew.
TEXT
}

if [[ $# -lt 1 || $1 == -* ]]; then
  usage >&2
  [[ ${1:-} == --help || ${1:-} == -h ]] && exit 0
  exit 2
fi
dir=$1
shift
umask 077  # Keys are for this user alone.
mkdir -p "$dir"

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

# issue NAME SAN USE: makes NAME.key, and NAME.pem signed by the authority. SAN and USE are the
# certificate's extensions. Each file is written under another name and then renamed, so that a
# server never reads half a file.
issue() {
  local name=$1 san=$2 use=$3
  new_key "$dir/$name.key.new"
  openssl req -new -key "$dir/$name.key.new" -subj "/O=Systole/CN=$name" |
    openssl x509 -req -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -days 365 \
      -set_serial "0x$(openssl rand -hex 16)" -out "$dir/$name.pem.new" \
      -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=%s\n' "$san" "$use") 2>/dev/null
  mv "$dir/$name.key.new" "$dir/$name.key"
  mv "$dir/$name.pem.new" "$dir/$name.pem"
}

if [[ ! -e $dir/ca.key ]]; then
  new_key "$dir/ca.key"
  openssl req -x509 -new -key "$dir/ca.key" -subj "/O=Systole/CN=authority" -days 365 \
    -addext keyUsage=critical,keyCertSign,cRLSign -out "$dir/ca.pem"
fi
san=DNS:localhost,IP:127.0.0.1,IP:::1
for host in "$@"; do
  if [[ $host =~ ^[0-9.]+$ ]]; then san+=",IP:$host"; else san+=",DNS:$host"; fi
done
issue server "$san" serverAuth
issue client DNS:client clientAuth
