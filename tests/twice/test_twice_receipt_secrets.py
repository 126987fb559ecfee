from __future__ import annotations

import pytest

from reprobuild.twice.receipt.secrets import is_secret, is_secret_file, secret_in

TOKEN = "hf_" + "abcdefghijklmnop"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "x"),
        ("WANDB_API_KEY", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("PGPASSWORD", "x"),
        ("MYSQL_PWD", "x"),
        ("SENTRY_DSN", "x"),
        ("SLACK_WEBHOOK_URL", "x"),
        ("AZURE_STORAGE_CONNECTION_STRING", "x"),
        ("DATABASE_URL", "postgres://me:secret@db.example/x"),
        ("MODEL", TOKEN),
        ("X", "-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_the_values_of_secrets_are_left_out(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("SEED", "7"), ("PWD", "/code"), ("TOKENIZERS_PARALLELISM", "false"), ("KEYBOARD", "us"),
     ("URL", "https://index.example/simple")],
)  # fmt: skip
def test_others_are_kept(name: str, value: str) -> None:
    assert not is_secret(name, value)


@pytest.mark.parametrize(
    "path", ["/w/.env", "/w/.env.local", "/w/.netrc", "/w/id_rsa", "/w/tls.pem", "/w/my_credentials.json",
             "/w/hf_token.txt", "/w/kaggle.json"],
)  # fmt: skip
def test_a_short_file_of_secrets_has_no_digest(path: str) -> None:
    assert is_secret_file(path, 100)
    assert not is_secret_file(path, 1 << 20)


@pytest.mark.parametrize("path", ["/w/train.csv", "/w/tokenizer.json", "/w/id_map", "/w/environment.yml"])
def test_data_has_one(path: str) -> None:
    assert not is_secret_file(path, 100)


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (("python3", "a.py", "--api-key", "x"), "--api-key"),
        (("python3", "a.py", "--token=x"), "--token"),
        (("sh", "-c", f"HF_TOKEN={TOKEN} python3 a.py"), "word 3"),
        (("python3", "a.py", "--seed", "7", "--tokenizer", "gpt2"), None),
    ],
)
def test_a_secret_in_a_command_is_found(command: tuple[str, ...], place: str | None) -> None:
    assert secret_in(command) == place
