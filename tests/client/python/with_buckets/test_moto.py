"""LocalFeed and the programs read shards from moto, a server of AWS's interfaces.

moto checks each signature with botocore's code, and each action against the user's policy.
"""

from __future__ import annotations

import glob
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import bucket_feed
import moto.settings
import pytest
from conftest import RECORDS
from moto.core.authorization import ActionAuthenticatorMixin
from moto.server import ThreadedMotoServer
from systole import _programs

BUCKET = "shards"
FOLDER = "flowers of +100% & more/ä"  # A name in which each encoding shows.
ROLE = "arn:aws:iam::123456789012:role/reader"
MAY_READ = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"},
    ],
}


@dataclass
class Bucket:
    endpoint: str
    spec: Path
    reader: dict[str, str]  # Variables with the key of a user who may read.
    stranger: dict[str, str]  # The same of a user who may do nothing.
    shards: str  # The same shards as files.
    digests: list[str]  # Of the same feed from these.

    @property
    def pattern(self) -> str:
        return f"s3://{BUCKET}/{FOLDER}/*.tfrecord"

    def run(self, command: list[object], **variables: str) -> subprocess.CompletedProcess[str]:
        return bucket_feed.run(command, AWS_ENDPOINT_URL=self.endpoint, **variables)

    def feed(self, **variables: str) -> subprocess.CompletedProcess[str]:
        command = bucket_feed.command(self.pattern, self.spec)
        return self.run(command, **variables)


def client(service: str, endpoint: str):
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="root",
        aws_secret_access_key="root",
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
    for user in ("reader", "stranger"):
        iam.create_user(UserName=user)
        key = iam.create_access_key(UserName=user)["AccessKey"]
        keys[user] = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
    policy = {"PolicyName": "may-read", "PolicyDocument": json.dumps(MAY_READ)}
    iam.put_user_policy(UserName="reader", **policy)
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(MAY_READ))
    iam.put_role_policy(RoleName="reader", **policy)
    s3.create_bucket(Bucket=BUCKET)
    for shard in glob.glob(shards):
        s3.upload_file(shard, BUCKET, f"{FOLDER}/{Path(shard).name}")
    # From here on moto checks the signature and the permission of each call.
    moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    spec = bucket_feed.write_spec(folder)
    return Bucket(
        endpoint, spec, keys["reader"], keys["stranger"], shards, bucket_feed.digests(shards, spec)
    )


def expect_same_steps(bucket: Bucket, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == bucket.digests


def test_a_feed_from_a_bucket_has_the_bytes_of_the_same_feed_from_files(bucket):
    expect_same_steps(bucket, bucket.feed(**bucket.reader))


def test_what_a_feed_has_read_stays_in_its_block_cache_for_the_next_one(bucket, tmp_path):
    command = bucket_feed.command(bucket.pattern, bucket.spec, block_cache=tmp_path)
    expect_same_steps(bucket, bucket.run(command, **bucket.reader))
    kept = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert kept > sum(Path(shard).stat().st_size for shard in glob.glob(bucket.shards))
    expect_same_steps(bucket, bucket.run(command, **bucket.reader))


def test_the_programs_read_a_bucket(bucket):
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
    # STS takes this call without a signature, and moto does not know that. So the next call is
    # served without a check.
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
