FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
# the files that the lock names, by their hashes; our own are built with what is among them, in its version
# hadolint ignore=DL3013
RUN pip wheel --no-cache-dir --require-hashes --no-deps --only-binary :all: --requirement locks/image.txt --wheel-dir /wheels \
    && pip install --no-cache-dir --no-index --find-links /wheels hatchling \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels ./client ./server ./dashboard

FROM python:3.13-slim
# what lies in /wheels is all there is to choose from
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels noisescale-server noisescale-dashboard \
    && useradd --system --uid 10001 noisescale
# by number: an orchestrator that asks for another user than root can tell
USER 10001
# the root file system may be read-only: nothing is written but below /tmp
ENV PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
EXPOSE 8321
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=12 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8321/readyz', timeout=2)"]
# A Postgres of its own is named by NOISESCALE_DATABASE_URL; this image never starts the embedded one.
CMD ["sh", "-c", "noisescale migrate && exec noisescale serve"]
