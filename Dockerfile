FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --constraint constraints.txt --wheel-dir /wheels ./client ./server ./dashboard

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels noisescale-server noisescale-dashboard \
    && useradd --system --uid 10001 noisescale
USER noisescale
# the root file system may be read-only: nothing is written but below /tmp
ENV PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
EXPOSE 8321
# A Postgres of its own is named by NOISESCALE_DATABASE_URL; this image never starts the embedded one.
CMD ["sh", "-c", "noisescale migrate && exec noisescale serve"]
