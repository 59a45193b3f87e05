import doctest
import pickle
import traceback

import pytest

import orch.store.credentials
from orch.core.errors import StoreUnreachable
from orch.store import Store, scrub
from orch.store.credentials import redact
from tests.store.example import START

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.mark.parametrize(
    "text",
    [
        f"s3://AKIAIOSFODNN7EXAMPLE:{SECRET}@bucket/runs",
        f"https://user:{SECRET}@host/path",
        f"s3://bucket?access_key=abc&secret_key={SECRET}&region=x",
        f"gs://bucket?token={SECRET}",
        f"S3FileSystem(secret_key='{SECRET}')",
        f'{{"password": "{SECRET}"}}',
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"session_token = {SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"the key {SECRET} is wrong",
        f"https://host/x?X-Amz-Signature={SECRET}",
    ],
)
def test_secrets_are_hidden(text):
    assert SECRET not in scrub(text)
    assert SECRET[10:] not in scrub(text)


@pytest.mark.parametrize(
    "key", ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "https://me-or-my-token@host", "hf_abcdefghijklmnopqrstuv"]
)
def test_access_keys_are_hidden(key):
    assert key not in scrub(f"The access key {key} does not exist")


def test_secrets_from_environment_variables_are_hidden_anywhere_in_a_text(monkeypatch):
    monkeypatch.setenv("MY_API_TOKEN", "plain-words")
    assert scrub("failed with plain-words here") == "failed with *** here"


@pytest.mark.parametrize(
    "text",
    [
        'File "/home/me/models/network.py", line 12, in forward\n    x = step(state, token=5)',
        "commit 3f287721e3f2a1d9c0b4a5968778695a4b3c2d1e",
        "RuntimeError: expected 64 tokens: got 12",
        "s3://bucket/runs?endpoint_override=localhost:9000&scheme=http",
        "see https://host.example/a/b?page=2",
        "KeyError: 'state'",
        "mat1 and mat2 shapes cannot be multiplied (64x16 and 8x16)",
    ],
)
def test_ordinary_text_is_unchanged(text):
    assert scrub(text) == text


def test_the_examples_in_the_docstrings_run():
    assert doctest.testmod(orch.store.credentials).failed == 0


def test_an_attempt_is_written_without_the_credentials_its_error_quotes(tmp_path):
    store = Store.open(tmp_path)
    error = f"cannot open s3://key:{SECRET}@bucket"
    row = {"attempt_id": "a", "trial_id": "t", "event": "end", "outcome": "failed", "at": START}
    store.write("attempts", [row | {"error_message": error, "traceback": error, "error_signature": error}])
    [written] = store.read("attempts").to_pylist()
    for name in ("error_message", "traceback", "error_signature"):
        assert written[name] == "cannot open s3://***@bucket"
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*.parquet"))


def test_the_error_for_an_invalid_location_is_one_sentence_without_credentials():
    with pytest.raises(StoreUnreachable, match=r"the store at s3://\*\*\*@bucket .*check the location") as caught:
        Store.open(f"s3://key:{SECRET}@bucket")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("location", ["nonsense://x/y", "s3://", "s3://bucket?nonsense=1"])
def test_the_error_for_a_malformed_location_has_a_remedy(location):
    with pytest.raises(StoreUnreachable, match=r"(check|use one like)"):
        Store.open(location)


def test_a_store_shows_its_location_without_credentials():
    uri = "s3://key:wJalrXUtnFEMI%2FK7MDENG@bucket/runs?endpoint_override=localhost:1&scheme=http"
    store = Store.open(uri)
    shown = "s3://***@bucket/runs?endpoint_override=localhost:1&scheme=http"
    assert store.location == shown
    assert repr(store) == f"Store('{shown}')"
    assert pickle.loads(pickle.dumps(store)).uri == uri
    assert redact("s3://bucket?unheard_of=abc") == "s3://bucket?unheard_of=***"
