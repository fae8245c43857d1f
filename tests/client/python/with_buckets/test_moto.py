"""LocalFeed and the programs read and write shards in moto, a server of AWS's interfaces.

moto checks each signature with botocore's code, and each action against the user's policy.
"""

from __future__ import annotations

import glob
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import bucket_feed
import moto.settings
import pytest
from conftest import RECORDS
from moto.core.authorization import ActionAuthenticatorMixin
from moto.server import ThreadedMotoServer
from systole import _programs

BUCKET = "shards"
# A bucket that serves requests without a signature, because Systole does not sign its requests to
# emulators of Cloud Storage.
OPEN = "open-to-all"
FOLDER = "flowers of +100% & more/ä"  # With characters that must be encoded in URLs and in XML.
ROLE = "arn:aws:iam::123456789012:role/reader"


def policy_of(*actions: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


MAY_READ = policy_of("s3:GetObject", "s3:ListBucket")
# The permissions that a writer needs, as the README of core/storage/bucket says.
MAY_WRITE = policy_of(
    *("s3:GetObject", "s3:ListBucket"),
    *("s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"),
)


@dataclass
class Bucket:
    endpoint: str
    spec: Path
    reader: dict[str, str]  # Environment variables: the key of a user who may read.
    writer: dict[str, str]  # The key of a user who may read and write.
    stranger: dict[str, str]  # The key of a user who may do nothing.
    shards: str  # A glob pattern of the files that were copied into the bucket.
    digests: list[str]  # The digests of the steps of a feed that reads these files.

    @property
    def pattern(self) -> str:
        return f"s3://{BUCKET}/{FOLDER}/*.tfrecord"

    def run(self, command: list[object], **variables: str) -> subprocess.CompletedProcess[str]:
        return bucket_feed.run(command, AWS_ENDPOINT_URL=self.endpoint, **variables)

    def feed(self, **variables: str) -> subprocess.CompletedProcess[str]:
        command = bucket_feed.command(self.pattern, self.spec)
        return self.run(command, **variables)


def client(service: str, endpoint: str, keys: dict[str, str] | None = None):
    keys = keys or {}
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=keys.get("AWS_ACCESS_KEY_ID", "root"),
        aws_secret_access_key=keys.get("AWS_SECRET_ACCESS_KEY", "root"),
    )


@pytest.fixture(scope="module")
def bucket(shards: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield made(f"http://{host}:{port}", shards, tmp_path_factory.mktemp("spec"))
    finally:
        server.stop()


def made(endpoint: str, shards: str, folder: Path) -> Bucket:
    iam, s3 = client("iam", endpoint), client("s3", endpoint)
    keys = {}
    for user in ("reader", "writer", "stranger"):
        iam.create_user(UserName=user)
        key = iam.create_access_key(UserName=user)["AccessKey"]
        keys[user] = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
    policy = {"PolicyName": "may-read", "PolicyDocument": json.dumps(MAY_READ)}
    iam.put_user_policy(UserName="reader", **policy)
    iam.put_user_policy(
        UserName="writer", PolicyName="may-write", PolicyDocument=json.dumps(MAY_WRITE)
    )
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(MAY_READ))
    iam.put_role_policy(RoleName="reader", **policy)
    s3.create_bucket(Bucket=BUCKET)
    s3.create_bucket(Bucket=OPEN)
    to_all = policy_of("s3:*")
    to_all["Statement"][0]["Principal"] = "*"
    s3.put_bucket_policy(Bucket=OPEN, Policy=json.dumps(to_all))
    for shard in glob.glob(shards):
        s3.upload_file(shard, BUCKET, f"{FOLDER}/{Path(shard).name}")
    # From here on moto checks the signature and the permission of each call.
    moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    spec = bucket_feed.write_spec(folder)
    digests = bucket_feed.digests(shards, spec)
    return Bucket(endpoint, spec, **keys, shards=shards, digests=digests)


def expect_same_steps(bucket: Bucket, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == bucket.digests


def test_a_feed_from_a_bucket_has_the_bytes_of_the_same_feed_from_files(bucket):
    expect_same_steps(bucket, bucket.feed(**bucket.reader))


def test_a_later_feed_reads_from_the_block_cache_and_not_from_the_bucket(
    bucket, tmp_path, monkeypatch
):
    indexes, blocks = tmp_path / "indexes", tmp_path / "blocks"
    indexes.mkdir()
    check = ActionAuthenticatorMixin._authenticate_and_authorize_action
    ranges = []

    def check_and_note(self, *arguments):
        if "Range" in self.headers:
            ranges.append(self.headers["Range"].removeprefix("bytes=").split("-"))
        check(self, *arguments)

    monkeypatch.setattr(
        ActionAuthenticatorMixin, "_authenticate_and_authorize_action", check_and_note
    )
    # To make an index, a feed reads whole shards. Later feeds find the indexes in this folder.
    told = bucket_feed.FEED.replace("sys.argv[2])", f"sys.argv[2], index_dir={str(indexes)!r})")

    def bytes_read(block_cache: Path | str) -> int:
        ranges.clear()
        command = [sys.executable, "-c", told, bucket.pattern, bucket.spec, block_cache]
        expect_same_steps(bucket, bucket.run(command, **bucket.reader))
        return sum(int(last) - int(first) + 1 for first, last in ranges)

    size = sum(Path(shard).stat().st_size for shard in glob.glob(bucket.shards))
    assert bytes_read(blocks) > size
    kept = sum(file.stat().st_size for file in blocks.rglob("*") if file.is_file())
    assert kept > size
    # When a feed is opened, it reads a few parts of the shards, to see whether they have changed.
    assert bytes_read(blocks) < size / 2
    assert bytes_read("") > size


def test_inspect_and_verify_read_a_bucket(bucket):
    program = _programs.path_of("systole")
    inspected = bucket.run([program, "inspect", "--json", bucket.pattern], **bucket.reader)
    assert inspected.returncode == 0, inspected.stderr
    assert f'"records":{RECORDS}' in inspected.stdout.replace(" ", "")
    verified = bucket.run([program, "verify", bucket.pattern], **bucket.reader)
    assert verified.returncode == 0, verified.stderr


def test_credentials_come_from_the_shared_files(bucket, tmp_path):
    (tmp_path / "credentials").write_text(
        "[reader]\n"
        f"aws_access_key_id = {bucket.reader['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key = {bucket.reader['AWS_SECRET_ACCESS_KEY']}\n"
    )
    done = bucket.feed(
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"), AWS_PROFILE="reader"
    )
    expect_same_steps(bucket, done)


def test_a_web_identity_gets_credentials_of_its_role(bucket, tmp_path, monkeypatch):
    # STS gives a web identity its credentials without a signature, but moto would refuse the call.
    # So the test makes moto serve the next call without a check.
    monkeypatch.setattr(ActionAuthenticatorMixin, "request_count", 0)
    monkeypatch.setattr(moto.settings, "INITIAL_NO_AUTH_ACTION_COUNT", 1)
    (tmp_path / "token").write_text("a.web.token")
    done = bucket.feed(
        AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "token"),
        AWS_ROLE_ARN=ROLE,
        AWS_ENDPOINT_URL_STS=bucket.endpoint,
    )
    expect_same_steps(bucket, done)


def test_a_wrong_secret_is_refused_and_shown_nowhere(bucket):
    secret = bucket.reader["AWS_SECRET_ACCESS_KEY"][::-1]
    done = bucket.feed(**bucket.reader | {"AWS_SECRET_ACCESS_KEY": secret})
    assert done.returncode != 0
    assert "SignatureDoesNotMatch" in done.stderr
    assert secret not in done.stdout + done.stderr


def test_a_user_without_permission_is_told_which_one_is_lacking(bucket):
    done = bucket.feed(**bucket.stranger)
    assert done.returncode != 0
    assert "s3:GetObject" in done.stderr
    assert "s3:ListBucket" in done.stderr
    assert bucket.stranger["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr


def images_of(shards: str) -> Path:
    """The images that these shards were packed from."""
    return Path(shards).parent / "images"


def names_in(bucket: Bucket, folder: str) -> set[str]:
    """The base names of the objects in a folder."""
    s3 = client("s3", bucket.endpoint, bucket.writer)
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{folder}/").get("Contents", [])
    return {Path(one["Key"]).name for one in listed}


# A folder of 16 shards or more also gets shards.manifest.idx, an index of all shards of the folder.
# Feeds then open the shards with this index.
@pytest.mark.parametrize("count", [3, 16])
def test_what_is_packed_and_indexed_in_a_bucket_is_fed_as_from_files(bucket, shards, count):
    program = _programs.path_of("systole")
    folder = f"packed ä {count}"
    prefix = f"s3://{BUCKET}/{folder}/flowers"
    for command in (
        ["pack", images_of(shards), prefix, "--shards", count],
        ["index", f"{prefix}-train-*"],
        ["verify", f"{prefix}-train-*"],
    ):
        done = bucket.run([program, *command], **bucket.writer)
        assert done.returncode == 0, done.stderr
    names = names_in(bucket, folder)
    index = f"flowers-train-00002-of-{count:05}.tfrecord.idx"
    assert {"labels.txt", "flowers.manifest", index} < names
    assert ("shards.manifest.idx" in names) == (count == 16)
    command = bucket_feed.command(f"{prefix}-train-*", bucket.spec)
    expect_same_steps(bucket, bucket.run(command, **bucket.reader))


def test_images_in_a_bucket_are_packed_into_it(bucket, shards, monkeypatch):
    # Here moto stands for an emulator of Cloud Storage. The programs send no token to an emulator,
    # so moto must not check their calls.
    program = _programs.path_of("systole")
    monkeypatch.setattr(moto.settings, "INITIAL_NO_AUTH_ACTION_COUNT", float("inf"))
    s3 = client("s3", bucket.endpoint)
    root = images_of(shards)
    for image in root.glob("*/*"):
        s3.upload_file(str(image), OPEN, f"images/{image.relative_to(root)}")
    environment = {"STORAGE_EMULATOR_HOST": bucket.endpoint}
    prefix = f"gs://{OPEN}/from-images/flowers"
    command = [program, "pack", f"gs://{OPEN}/images/*/*.jpg", prefix, "--shards", 3]
    packed = bucket_feed.run(command, **environment)
    assert packed.returncode == 0, packed.stderr
    fed = bucket_feed.run(bucket_feed.command(f"{prefix}-train-*", bucket.spec), **environment)
    expect_same_steps(bucket, fed)


@pytest.mark.parametrize(("scheme", "name"), [("s3", BUCKET), ("gs", OPEN)])
def test_a_large_shard_is_put_together_from_its_parts(bucket, tmp_path, monkeypatch, scheme, name):
    if scheme == "gs":
        monkeypatch.setattr(moto.settings, "INITIAL_NO_AUTH_ACTION_COUNT", float("inf"))
    program = _programs.path_of("systole")
    bucket_feed.run([program, "make-flowers", tmp_path / "images", "--images", 64, "--size", 400])
    pack = [program, "pack", tmp_path / "images"]
    raw = ["--shards", 1, "--raw"]
    prefix = f"{scheme}://{name}/large/p"
    variables = bucket.writer | {"STORAGE_EMULATOR_HOST": bucket.endpoint}
    for out in (tmp_path / "p", prefix):
        done = bucket.run([*pack, out, *raw], **variables)
        assert done.returncode == 0, done.stderr
    key = "large/p-train-00000-of-00001.tfrecord"
    s3 = client("s3", bucket.endpoint, bucket.writer)
    there = s3.get_object(Bucket=name, Key=key)
    local = (tmp_path / "p-train-00000-of-00001.tfrecord").read_bytes()
    assert there["Body"].read() == local
    assert len(local) > 16 << 20
    assert there["ETag"].strip('"').endswith("-3")  # It was uploaded in 3 parts.


# Writes 40 MiB into two shards, each in several parts. With "read" it then reads the shards. With
# "fail" the examples end in an exception after parts were sent.
WRITE = """
import random
import sys

import systole

noise = random.Random(1).randbytes(1 << 20)


def examples():
    for i in range(40):
        yield {"x": noise, "i": i}
    if sys.argv[2] == "fail":
        raise RuntimeError("no more examples")


systole.write(sys.argv[1], examples(), shards=2)
if sys.argv[2] == "read":
    print([int(one["i"][0]) for one in systole.read(sys.argv[1] + "-*.tfrecord")])
"""


@pytest.mark.parametrize(("scheme", "name"), [("s3", BUCKET), ("gs", OPEN)])
def test_what_python_writes_into_a_bucket_has_the_bytes_of_files(
    bucket, tmp_path, monkeypatch, scheme, name
):
    if scheme == "gs":
        monkeypatch.setattr(moto.settings, "INITIAL_NO_AUTH_ACTION_COUNT", float("inf"))
    variables = bucket.writer | {"STORAGE_EMULATOR_HOST": bucket.endpoint}
    for out in (tmp_path / "p", f"{scheme}://{name}/written/p"):
        done = bucket.run([sys.executable, "-c", WRITE, out, "read"], **variables)
        assert done.stdout == f"{[*range(0, 40, 2), *range(1, 40, 2)]}\n", done.stderr
    s3 = client("s3", bucket.endpoint, bucket.writer)
    for file in ("p-00000-of-00002.tfrecord", "p-00001-of-00002.tfrecord"):
        there = s3.get_object(Bucket=name, Key=f"written/{file}")
        assert there["Body"].read() == (tmp_path / file).read_bytes()
        assert there["ETag"].strip('"').endswith("-3")  # Uploaded in 3 parts.
    done = bucket.run(
        [sys.executable, "-c", WRITE, f"{scheme}://{name}/failed/p", "fail"], **variables
    )
    assert "no more examples" in done.stderr
    assert s3.list_objects_v2(Bucket=name, Prefix="failed/").get("Contents", []) == []
    # The writer may not list uploads. So moto must serve the next call without a check.
    monkeypatch.setattr(moto.settings, "INITIAL_NO_AUTH_ACTION_COUNT", float("inf"))
    assert s3.list_multipart_uploads(Bucket=name).get("Uploads", []) == []


def test_write_without_permission_names_the_missing_permission(bucket):
    out = f"s3://{BUCKET}/refused/p"
    done = bucket.run([sys.executable, "-c", WRITE, out, "read"], **bucket.reader)
    assert "systole._errors.PermissionDenied" in done.stderr and "s3:PutObject" in done.stderr
    assert bucket.reader["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr
    assert names_in(bucket, "refused") == set()


def test_pack_and_index_without_permission_name_the_missing_permission(bucket, shards):
    program = _programs.path_of("systole")
    secret = bucket.reader["AWS_SECRET_ACCESS_KEY"]
    out = f"s3://{BUCKET}/refused/flowers"
    for command in (
        ["pack", images_of(shards), out, "--shards", 1],
        ["index", bucket.pattern],
    ):
        done = bucket.run([program, *command], **bucket.reader)
        assert done.returncode != 0
        assert "403" in done.stderr
        assert "s3:PutObject" in done.stderr
        assert secret not in done.stdout + done.stderr
    assert names_in(bucket, "refused") == set()


def test_a_feed_writes_indexes_into_a_bucket_only_with_write_index(bucket, shards):
    program = _programs.path_of("systole")
    prefix = f"s3://{BUCKET}/unindexed/flowers"
    packed = bucket.run(
        [program, "pack", images_of(shards), prefix, "--shards", 3], **bucket.writer
    )
    assert packed.returncode == 0, packed.stderr
    index = "flowers-train-00000-of-00003.tfrecord.idx"
    for write_index in (False, True):
        told = bucket_feed.FEED.replace("sys.argv[2])", f"sys.argv[2], write_index={write_index})")
        command = [sys.executable, "-c", told, f"{prefix}-train-*", bucket.spec, ""]
        expect_same_steps(bucket, bucket.run(command, **bucket.writer))
        assert (index in names_in(bucket, "unindexed")) == write_index
