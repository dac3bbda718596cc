"""Which quick tests have to see a bug in which file, the narrow ones first and the long ones last."""

from collections.abc import Sequence
from typing import Final

SERVER: Final = "server/src/noisescale_server"
TRANSPORT: Final = "client/src/noisescale/transport"


def _of(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{name}.py" for name in names)


_BUCKETS = _of("server/series", "buckets", "layer_buckets")
_LAYERS = _of("server/series", "layer_buckets", "layers_of_long_runs", "answers")
_SERIES = _of(
    "server/series", "points", "default_window", "whole_run", "kept_history", "zoom", "signal", "resumed_runs"
)
_ANSWERS = _of("server/series", "layers_of_long_runs", "sliding", "latest", "answers")
_INGESTION = _of("server/ingestion", "ingested_rows", "cursor", "ledger", "kinds", "overtaken", "deleted_runs", "retry")
_INGESTED = _of(
    "server/ingestion", "heartbeat", "refusals", "replicas", "streams_of_a_run", "metric_names", "stale_windows"
)
_RUNS = _of("server/api", "runs")
_KEYS = _of("server/access", "key_rules", "keys_made_meanwhile", "owners", "keys", "offboarding")
_PEOPLE = _of("server/access", "people_rules", "session_times", "logins")
_GATE = _of(
    "server/access", "credentials", "keys", "local_mode", "logins", "limits", "matrix", "wrong_keys", "read_rate"
)
_PROMISED_BY_SERVERS = _of("server/access", "promised_numbers")
_PARTS = _of("client/spool", "waiting_and_lost", "segments", "stream_folder", "faults_of_files")
_STREAM = (
    *_of("client/transport", "stream_numbers", "stream", "complaints", "uploader_times", "uploader"),
    *_of("client/transport", "restored_server", "status_matrix", "foreign_answers"),
)
_SPOOL = _of(
    "client/spool",
    "conflicts",
    "spool_thread",
    "disk_spool",
    "spool_cuts",
    "kept_streams",
    "disk",
    "reentrancy",
    "killed_processes",
)
_LEFT = _of(
    "client/spool",
    "conflicts",
    "another_database",
    "ends_of_streams",
    "kept_streams",
    "late_delivery",
    "undelivered",
    "faults_of_files",
)
_MODEL = _of("client/spool", "nth_fault", "spool_model")
_PROMISED = _of("client/transport", "promised_numbers")
_STORIES = _of("client/transport", "simulated_jobs")

TESTS: Final[dict[str, Sequence[str]]] = {
    **{
        f"{SERVER}/{name}.py": tests
        for name, tests in {
            "services/ingest/ingestion": (*_PROMISED_BY_SERVERS, *_INGESTION, *_INGESTED, *_RUNS, *_BUCKETS, *_ANSWERS),
            "storage/series/pyramid": (*_BUCKETS, *_SERIES),
            "storage/series/group_pyramid": _LAYERS,
            "storage/ingest/measurements": (*_BUCKETS, *_INGESTION),
            "storage/runs/streams": (*_INGESTION, *_INGESTED, *_SERIES),
            "storage/series/series": (*_BUCKETS, *_SERIES, *_ANSWERS),
            "storage/series/group_series": _LAYERS,
            "services/series/live": (*_of("server/series", "live_pieces"), *_SERIES, *_ANSWERS),
            "services/series/series": (*_SERIES, *_ANSWERS),
            "services/series/windows": (*_SERIES, *_ANSWERS),
            "services/access/sessions": (*_PROMISED_BY_SERVERS, *_PEOPLE, *_GATE),
            "services/access/keys": (*_PROMISED_BY_SERVERS, *_KEYS, *_GATE),
            "services/access/access": (*_of("server/access", "rights"), *_KEYS, *_PEOPLE, *_GATE),
            "services/access/people": (*_PEOPLE, *_KEYS, *_GATE),
            "api/access/gate": _GATE,
            "api/access/credentials": (*_PROMISED_BY_SERVERS, *_GATE, *_KEYS),
            "api/access/route_rights": _of("server/access", "matrix"),
            "api/access/login_provider": (*_PROMISED_BY_SERVERS, *_of("server/access", "login_provider"), *_PEOPLE),
        }.items()
    },
    **{
        f"{TRANSPORT}/{name}.py": tests
        for name, tests in {
            "__init__": _STREAM,
            "accounts": (*_of("client/transport", "stream_numbers"), *_STREAM),
            "upload/answers": (*_PROMISED, *_of("client/transport", "answers"), *_STREAM),
            "upload/database_behind": _LEFT,
            "spool/disk_spool": (*_PROMISED, *_SPOOL, *_STREAM, *_LEFT, *_MODEL),
            "spool/frames": (*_of("client/transport", "frames_on_disk", "frames"), *_PARTS, *_STREAM, *_SPOOL),
            "upload/pace": (*_PROMISED, *_STREAM),
            "spool/held_frames": (*_of("client/spool", "undelivered"), *_PARTS, *_SPOOL),
            "upload/http": (*_PROMISED, *_of("client/transport", "http_questions", "http"), *_STREAM),
            "upload/late_delivery": (
                *_PROMISED,
                *_of("client/spool", "faults_of_files"),
                *_LEFT,
                *_of("client/transport", "restored_server"),
                *_STORIES,
            ),
            "upload/left_behind": (*_PARTS, *_LEFT, *_SPOOL, *_STREAM, *_MODEL),
            "limits": (*_PROMISED, *_LEFT),
            "spool/loss_book": (*_PARTS, *_SPOOL, *_STREAM),
            "spool/segment": (*_PARTS, *_SPOOL, *_MODEL),
            "spool/segments": (*_PROMISED, *_PARTS, *_SPOOL, *_LEFT, *_MODEL),
            "spool/new_folder": (*_of("client/spool", "conflicts"), *_SPOOL),
            "spool/spool": (*_PROMISED, *_PARTS, *_STREAM),
            "upload/stream": (*_PROMISED, *_STREAM, *_SPOOL, *_LEFT, *_MODEL, *_STORIES),
            "spool/stream_folder": (*_PROMISED, *_PARTS, *_SPOOL, *_LEFT),
            "upload/uploader": (*_PROMISED, *_STREAM, *_LEFT, *_STORIES),
            "wire": (*_of("client/transport", "wire", "frames"), *_STREAM),
            "spool/write_speed": (*_PROMISED, *_PARTS, *_SPOOL),
        }.items()
    },
}
