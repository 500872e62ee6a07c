# Octet with CUDA, for every NVIDIA GPU from Ampere on. The machine needs NVIDIA's driver (570 or
# newer) and its container toolkit. From the root of the repository:
#
#   docker build -f docker/cuda.Dockerfile -t octet:cuda .
#   docker run --rm --gpus all -p 127.0.0.1:8642:8642 octet:cuda      # http://127.0.0.1:8642
#   docker run --rm --gpus all -v "$PWD:/work" --user "$(id -u):$(id -g)" octet:cuda demo
FROM nvidia/cuda:12.8.1-devel-ubuntu24.04 AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      cmake dpkg-dev file g++ git libcli11-dev libcurl4-openssl-dev libfmt-dev libjpeg-dev \
      libmicrohttpd-dev libsqlite3-dev libssl-dev libutf8proc-dev libwebp-dev \
      ninja-build nlohmann-json3-dev zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /octet
COPY . .
# The machine that builds an image has no GPU to ask: all architectures.
RUN cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DOCTET_CUDA=ON \
      -DOCTET_CUDA_ARCHITECTURES=all -DOCTET_TESTS=OFF \
    && cmake --build build --target octet \
    && cd build && cpack -G DEB

# The CUDA runtime is linked statically; cuBLASLt, for what is not quantized, is opened at run time.
FROM nvidia/cuda:12.8.1-base-ubuntu24.04
RUN --mount=type=bind,from=build,source=/octet/build/packages,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libcublas-12-8 \
      /packages/octet_*.deb \
    && rm -rf /var/lib/apt/lists/*
# Ubuntu's image has a user 1000 already. Whoever it runs as (docker run --user) can write the
# caches; a volume there keeps them.
RUN install -d -m 1777 /cache /work
ENV OCTET_CACHE_DIR=/cache/octet HF_HOME=/cache/huggingface XDG_STATE_HOME=/cache/state
VOLUME /cache
COPY docker/octet-is-healthy /usr/local/bin/
EXPOSE 8642
# A large model takes minutes to load.
HEALTHCHECK --interval=10s --timeout=3s --start-period=300s CMD ["octet-is-healthy"]
USER ubuntu
WORKDIR /work
ENTRYPOINT ["octet"]
# Nothing in a container can be reached but by a port that is published: `-p 127.0.0.1:8642:8642` is
# for this machine alone. For others give `serve --host 0.0.0.0 --keys FILE`.
CMD ["serve", "--host", "0.0.0.0", "--insecure"]
