FROM golang:1.26-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
ENV KB_CACHE_DIR=/cache
WORKDIR /src
COPY scripts/setup.py scripts/setup.py
RUN python3 scripts/setup.py run
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=1 go build -trimpath -buildvcs=false -o /usr/local/bin/kb ./cmd/kb
RUN kb models pull

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --home-dir /data kb \
    && install --directory --owner=kb --group=kb /data
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# ONNX Runtime, the model, and the PostgreSQL that serves when KB_DATABASE_URL names no other.
COPY --from=build --chown=kb:kb /cache /cache
COPY --from=build /usr/local/bin/kb /usr/local/bin/kb
COPY LICENSE /usr/share/doc/kb/LICENSE
ENV KB_CACHE_DIR=/cache KB_DATA_DIR=/data
USER kb
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["kb", "health"]
ENTRYPOINT ["kb"]
CMD ["serve"]
