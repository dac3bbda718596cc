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
    *(({name: 48151623}, {name: M}) for name in (
        "token", "api_key", "hf_token", "auth_token", "accessToken", "bot.token", "jwt", "apitoken", "github_pat",
    )),
    ({"token": [111222333, 7]}, {"token": [M, 7]}),
    ({"hub_token": {"a": 111222333, "is_set": True}}, {"hub_token": {"a": M, "is_set": True}}),
    # keys of objects
    ({HF: 1}, {M: 1}),
    ({"users": {OPENAI: {"x": 1}, HF: 2}}, {"users": {M: {"x": 1}, f"{M} 2": 2}}),
    ({"headers": {f"Bearer {JWT}": 1}}, {"headers": {f"Bearer {M}": 1}}),
    ({"db": {"postgresql://ada:hunter2@db/x": "main"}}, {"db": {f"postgresql://ada:{M}@db/x": "main"}}),
    # command lines and environments
    ({"argv": ["--token", "48151623", "--lr", "1000"]}, {"argv": ["--token", M, "--lr", "1000"]}),
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
    *({name: 2_000_000_000} for name in (
        "max_tokens", "num_tokens", "tokens", "train_tokens", "total_tokens", "tokens_seen", "token_budget",
        "max_token",
        "tokens_per_step", "pad_token_id", "pad_token", "mask_token", "cost_per_token", "batch_token", "key_dim",
        "keys", "num_key_value_heads", "key_size", "tokenizer_threads", "keyed", "seed", "token_embedding_dim",
    )),
    {"num_tokens": 4096}, {"token": 7, "api_key": 0}, {"pat": True}, {"tokens": [4096, 8192]},
    {"env": {"token_ids": [50256]}}, {"tokenizer": "gpt2"}, {"keyboard": "x"}, {"pass": 3}, {"secretary": "Ada"},
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
    ("postgresql://ada:p/a@ss@db:5432/x", "postgresql://ada:…@db:5432/x"),
    ("mysql://u:a/b?c#d@h/x?y=1 then lr=1", "mysql://u:…@h/x?y=1 then lr=1"),
    ("redis://:pa/ss@h:6379/0,redis://:q/r@h2", "redis://:…@h:6379/0,redis://:…@h2"),
    ("https://x.org/a?key=abcdef", "https://x.org/a?key=…"),
    ("https://x.org/a?q=1&api_key=48151623&page=2#top", "https://x.org/a?q=1&api_key=…&page=2#top"),
    ("https://x.org/?subscription-key=abc&code=x1", "https://x.org/?subscription-key=…&code=…"),
    ("https://x.org/?X-Goog-Signature=abc&t=1", "https://x.org/?X-Goog-Signature=…&t=1"),
    *((f"to https://{before}T0/B0x9/abc end", f"to https://{before}… end") for before in (
        "hooks.slack.com/services/", "hooks.slack.com/triggers/", "hooks.slack-gov.com/services/",
        "canary.discord.com/api/webhooks/", "discord.com/api/v10/webhooks/", "contoso.webhook.office.com/",
        "outlook.office365.com/webhook/", "prod-12.westus.logic.azure.com:443/", "hooks.zapier.com/hooks/",
        "maker.ifttt.com/trigger/", "hook.eu1.make.com/", "hook.integromat.com/", "chat.googleapis.com/v1/spaces/",
        "api.telegram.org/bot", "events.pagerduty.com/integration/", "open.feishu.cn/open-apis/bot/v2/hook/",
        "qyapi.weixin.qq.com/cgi-bin/webhook/", "webhook.site/", "ntfy.sh/",
    )),
    ("https://chat.example.org/hooks/a1b2c3d4e5f6g7h8i9", "https://chat.example.org/hooks/…"),
    ("http://n8n:5678/webhook/7d1f0c9e-0000-4000-8000-0", "http://n8n:5678/webhook/…"),
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
]  # fmt: skip
"""A text, and how it may be kept; `…` stands for the mask."""

HARMLESS_TEXTS = [
    "num_tokens=4096 tokenizer=gpt2 pad_token=<pad>",
    "a pass over the data: the token mixer, then the key",
    "https://example.com/a:b@c",
    "the secret of success",
    "torchrun --nproc-per-node 8 train.py --max-tokens 4096",
    "task-name-with-sk-in-it and mask-0123456789abcdefghij",
    "http://localhost:8080/path@tag docker://registry:5000/image@sha256:abc http://[::1]:8321/a@b",
    "https://example.com/?sort=key&page=2 --key=value sort_key=name key: value",
    "https://docs.example.com/webhooks/about-webhooks and https://example.com/hooks/list",
    "see https://example.org/a:b/c and mail ada@example.org",
    "torchrun --token 7 --max-token 4096",
    "s3://bucket/checkpoints/step=100/loss=2.31",
]
"""Texts that are kept as they are."""
