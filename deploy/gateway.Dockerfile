# The gateway's image: what requirements.lock pins, a user without rights, and the server as process 1.
# No `syntax` line: the builder's own frontend will do, and another would have to be pulled.

# A patch release, so that a build is the same tomorrow. Debian's and Python's fixes come by raising it.
ARG PYTHON=python:3.13.16-slim-trixie

FROM ${PYTHON} AS build
# An index of one's own, for networks that do not reach PyPI.
ARG PIP_INDEX_URL
ENV PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python3 -m venv /build
WORKDIR /src
COPY requirements.lock ./
# Each file is checked against its hash here; all that follows installs from these files alone. The secret holds the
# roots of a proxy that inspects TLS, beside which the usual ones still count; neither stays in a layer.
RUN --mount=type=secret,id=ca-bundle --mount=type=tmpfs,target=/ca --mount=type=cache,target=/root/.cache/pip \
    if grep -qs 'BEGIN CERTIFICATE' /run/secrets/ca-bundle; then \
        cat /etc/ssl/certs/ca-certificates.crt /run/secrets/ca-bundle > /ca/bundle.pem; \
        export PIP_CERT=/ca/bundle.pem SSL_CERT_FILE=/ca/bundle.pem; \
    fi; \
    /build/bin/pip download --quiet --no-deps --only-binary :all: --require-hashes -r requirements.lock -d /wheels
COPY pyproject.toml README.md LICENSE ./
COPY gateway ./gateway
# The gateway with what it asks for, not all of the lock: that holds the local mode's Caddy and supervisor too.
# Bytecode is never checked against its source again, since a root file system that is read-only keeps both as they are.
RUN offline="--quiet --no-index --find-links /wheels" \
    && /build/bin/pip install $offline hatchling editables \
    && /build/bin/pip wheel $offline --no-deps --no-build-isolation --wheel-dir /wheels . \
    && python3 -m venv --without-pip /opt/gateway \
    && /build/bin/pip --python /opt/gateway/bin/python install $offline --no-compile vllm-gateway \
    && /opt/gateway/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/gateway/lib
COPY --chmod=755 deploy/gateway_health.py /opt/gateway/bin/gateway-health

FROM ${PYTHON}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="vllm-gateway" \
      org.opencontainers.image.description="A gateway before vLLM: API keys, limits, default chat-template kwargs and exact accounting for any OpenAI SDK client" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/vllm-gateway/vllm-gateway" \
      org.opencontainers.image.documentation="https://github.com/vllm-gateway/vllm-gateway/tree/main/docs"
# The base image ships Python's library without bytecode, and each start would compile it anew: two seconds, and as
# much for `docker compose exec gateway gateway keys list`.
RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        -x '/(test|tests|idlelib|tkinter|turtledemo|ensurepip|lib2to3|site-packages|dist-packages)/' \
        "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    # A new named volume takes owner and mode from here. The number has no name: nothing asks for one.
    && install -d -o 10001 -g 10001 -m 0700 /data
COPY --from=build /opt/gateway /opt/gateway
ENV PATH=/opt/gateway/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GATEWAY_HOST=0.0.0.0 \
    GATEWAY_DATA_DIR=/data
USER 10001:10001
EXPOSE 8080
# Once a second until it first answers, which takes a second or two; after that a process that hangs is told within a minute.
HEALTHCHECK --interval=15s --timeout=5s --retries=3 --start-period=60s --start-interval=1s CMD ["gateway-health"]
# As a list: the server itself is process 1 and hears SIGTERM. `docker run … keys list` works too.
ENTRYPOINT ["gateway"]
CMD ["serve"]
