"""Configs with secrets and without, and how they may be stored: the same for the job, the server and the rules."""

from typing import Any

M = "[masked]"
HF, OPENAI = "hf_" + "aB3" * 11 + "x", "sk-proj-" + "Ab12" * 10
GITHUB, SLACK = "ghp_" + "a1B2" * 9, "xoxb-1234567890-abcdefghij"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
HOOK = "https://hooks.slack.com/services/"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"

SECRETS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"hftoken": "x1"}, {"hftoken": M}),
    ({"HFTOKEN": "x1"}, {"HFTOKEN": M}),
    ({"githubtoken": "x1"}, {"githubtoken": M}),
    ({"clientsecret": "x1"}, {"clientsecret": M}),
    ({"privatekey": "x1"}, {"privatekey": M}),
    ({"wandb_key": "x1"}, {"wandb_key": M}),
    ({"hf_token_ro": "x1"}, {"hf_token_ro": M}),
    ({"api_key_value": "x1"}, {"api_key_value": M}),
    ({"github_pat": "x1"}, {"github_pat": M}),
    ({"jwt": "x1"}, {"jwt": M}),
    # by name, however it is written
    *(({name: "hunter2"}, {name: M}) for name in (
        "password", "db.password", "WANDB_API_KEY", "hf_token", "hfToken", "token", "aws-secret", "client_secret",
        "access_key", "Authorization", "passphrase", "credentials", "AWSSecretAccessKey", "dbpassword", "db_pass",
        "SENTRY_DSN", "slackWebhookUrl", "session_cookie", "PGPASSWORD", "ssh_key", "gpgPrivateKey",
    )),
    # plurals
    *(({name: ["a", "b"]}, {name: M}) for name in ("passwords", "secrets", "webhooks")),
    ({"api_keys": ["a", "b"]}, {"api_keys": [M, M]}),
    ({"tokens": {"hub": "a", "train": 2_000}}, {"tokens": {"hub": M, "train": 2_000}}),
    # objects and numbers
    ({"credentials": {"user": "ada", "pw": "x"}}, {"credentials": M}),
    ({"hub": {"auth": {"bearer": "x"}}}, {"hub": {"auth": M}}),
    ({"a": [{"password": 1234}]}, {"a": [{"password": M}]}),
    # command lines and environments
    ({"argv": ["train.py", "--api-key", "abc", "--lr", "0.1"]}, {"argv": ["train.py", "--api-key", M, "--lr", "0.1"]}),
    ({"argv": ["--hf-token=abc", "--epochs=3"]}, {"argv": [f"--hf-token={M}", "--epochs=3"]}),
    ({"cmd": "train.py --password hunter2 --lr 0.1"}, {"cmd": f"train.py --password {M} --lr 0.1"}),
    ({"env": {"WANDB_API_KEY": "abc", "HOME": "/root"}}, {"env": {"WANDB_API_KEY": M, "HOME": "/root"}}),
    ({"env": ["HF_TOKEN=abc", "RANK=0"]}, {"env": [f"HF_TOKEN={M}", "RANK=0"]}),
    ({"env": [{"name": "HF_TOKEN", "value": "abc"}]}, {"env": [{"name": "HF_TOKEN", "value": M}]}),
    ({"env": [["HF_TOKEN", "abc"], ["RANK", "0"]]}, {"env": [["HF_TOKEN", M], ["RANK", "0"]]}),
    # by what the value looks like
    *(({"note": value}, {"note": M}) for value in (HF, OPENAI, GITHUB, SLACK, JWT, PEM, "AKIAIOSFODNN7EXAMPLE")),
    ({"alerts": f"{HOOK}T0/B0/xyz"}, {"alerts": f"{HOOK}{M}"}),
]  # fmt: skip
"""A config, and what of it may be kept."""

HARMLESS: list[dict[str, Any]] = [
    {"eostoken": "</s>", "padtoken": "<pad>", "token_level": "word", "sort_key": "length", "read": "x", "test": "y"},
    {"num_tokens": 4096}, {"tokenizer": "gpt2"}, {"token": 7}, {"keyboard": "x"}, {"pass": 3}, {"secretary": "Ada"},
    {"password": ""}, {"password": None}, {"use_auth": True}, {"data": "https://example.com/a:b@c"},
    {"pad_token": "<pad>", "additional_special_tokens": ["<s>", "</s>"], "max_new_tokens": "many"},
    {"key_size": 64, "author": "me", "monkey": "no", "max_tokens": 5, "public_key": "ssh-ed25519 AAAA"},
    {"first_pass": "encoder", "auth_timeout": 30, "commit": "0123456789abcdef0123456789abcdef01234567"},
    {"argv": ["train.py", "--tokenizer", "gpt2", "--max-tokens", "5", "--use-token", "--lr", "0.1"]},
    {"layers": [["conv", "relu"], ["key", "value"]], "model": {"name": "gpt2", "value": "large"}},
    {"id": "7d1f0c9e-0000-4000-8000-000000000000", "sha256": "a" * 64, "url": "https://ada@example.com/x"},
]  # fmt: skip
"""Configs that are kept as they are."""

IN_TEXTS = [
    ("--db=postgresql://ada:hunter2@db/x", "--db=postgresql://ada:…@db/x"),
    ("redis://:p@ss:word@cache:6379/0", "redis://:…@cache:6379/0"),
    ("host=db user=ada password=hunter2 dbname=x", "host=db user=ada password=… dbname=x"),
    ("Server=db;User Id=ada;Password='hun ter2';Encrypt=yes", "Server=db;User Id=ada;Password='…';Encrypt=yes"),
    ("DefaultEndpointsProtocol=https;AccountKey=Ab12+/==;x=1", "DefaultEndpointsProtocol=https;AccountKey=…;x=1"),
    (f"https://{GITHUB}@github.com/ada/x.git", "https://…@github.com/ada/x.git"),
    ("https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/2", "https://…@o1.ingest.sentry.io/2"),
    ("https://example.com/x?token=abc&page=2", "https://example.com/x?token=…&page=2"),
    ("https://acc.blob.core.windows.net/x?sv=2024&sig=a%2Bb", "https://acc.blob.core.windows.net/x?sv=2024&sig=…"),
    ("https://s3/x?X-Amz-Credential=AKIA/1&X-Amz-Signature=ab", "https://s3/x?X-Amz-Credential=…&X-Amz-Signature=…"),
    ("https://discord.com/api/webhooks/1/abc is told", "https://discord.com/api/webhooks/… is told"),
    ("curl -H 'Authorization: Bearer abcdefghijklmnopqrst' x", "curl -H 'Authorization: … …' x"),
    ("Namespace(lr=0.1, api_key='abc', tokens=5)", "Namespace(lr=0.1, api_key='…', tokens=5)"),
    ("{'password': 'hunter2', 'port': 5432}", "{'password': '…', 'port': 5432}"),
    ('{"api_key": "abc", "lr": 1}', '{"api_key": "…", "lr": 1}'),
    ("--secret hunter2 --lr 1", "--secret … --lr 1"),
    (f"use {HF}, then {OPENAI}.", "use …, then …."),
]
"""A text, and how it may be kept; `…` stands for the mask."""

HARMLESS_TEXTS = [
    "num_tokens=4096 tokenizer=gpt2 pad_token=<pad>",
    "a pass over the data: the token mixer, then the key",
    "https://example.com/a:b@c",
    "the secret of success",
    "torchrun --nproc-per-node 8 train.py --max-tokens 4096",
    "task-name-with-sk-in-it and mask-0123456789abcdefghij",
    "s3://bucket/checkpoints/step=100/loss=2.31",
]
"""Texts that are kept as they are."""
