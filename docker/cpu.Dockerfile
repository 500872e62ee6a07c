# Octet without CUDA, for x86-64 and aarch64. From the root of the repository:
#
#   docker build -f docker/cpu.Dockerfile -t octet .
#   docker run --rm -p 127.0.0.1:8642:8642 octet            # the page at http://127.0.0.1:8642
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" octet demo
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      cmake dpkg-dev file g++ git libcli11-dev libcurl4-openssl-dev libfmt-dev libjpeg-dev \
      libmicrohttpd-dev libsqlite3-dev libssl-dev libutf8proc-dev libwebp-dev \
      ninja-build nlohmann-json3-dev zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /octet
COPY . .
RUN cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DOCTET_CUDA=OFF -DOCTET_TESTS=OFF \
    && cmake --build build --target octet \
    && cd build && cpack -G DEB

# The package names the libraries that it needs, so they need no list here.
FROM debian:bookworm-slim
RUN --mount=type=bind,from=build,source=/octet/build/packages,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates /packages/octet_*.deb \
    && rm -rf /var/lib/apt/lists/*
# Whoever it runs as (docker run --user) can write the caches; a volume there keeps them.
RUN useradd --uid 1000 octet && install -d -m 1777 /cache /work
ENV OCTET_CACHE_DIR=/cache/octet HF_HOME=/cache/huggingface XDG_STATE_HOME=/cache/state
VOLUME /cache
COPY docker/octet-is-healthy /usr/local/bin/
EXPOSE 8642
# A large model takes minutes to load.
HEALTHCHECK --interval=10s --timeout=3s --start-period=300s CMD ["octet-is-healthy"]
USER octet
WORKDIR /work
ENTRYPOINT ["octet"]
# Nothing in a container can be reached but by a port that is published: `-p 127.0.0.1:8642:8642` is
# for this machine alone. For others give `serve --host 0.0.0.0 --keys FILE`.
CMD ["serve", "--host", "0.0.0.0", "--insecure"]
