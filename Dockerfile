# The trainer image. Build it with
#
#     docker build --tag trainer .
#
# The base is the last Deep Learning Container with TensorFlow. It brings the system's libraries,
# Cloud Storage tools and drivers; its own TensorFlow (2.17, Python 3.10) is older than what was tested
# here, so the locked packages go into an environment of their own. Any image with Python and pip will
# do in its place: --build-arg BASE_IMAGE=python:3.12-slim
# For GPUs the base must bring CUDA 12.5 or a later 12.x and cuDNN 9, which the locked TensorFlow 2.21 was
# built for; the Deep Learning base for GPUs (tf2-cu123.2-17.py310) has an older cuDNN.
# Names and dates: https://cloud.google.com/deep-learning-containers/docs/choosing-container, read 2026-11.
ARG BASE_IMAGE=us-docker.pkg.dev/deeplearning-platform-release/gcr.io/tf2-cpu.2-17.py310
FROM ${BASE_IMAGE}

ARG UV_VERSION=0.13.8
ARG PYTHON_VERSION=3.12
ARG REVISION=unknown

USER root
# Two memory arenas instead of eight for each processor: 80 MiB less in a replica, no slower.
ENV PATH=/opt/trainer/bin:$PATH \
    UV_PYTHON_INSTALL_DIR=/opt/python \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2

# The packages change seldom, the program often: two layers, and only the second is built again.
COPY trainer/requirements.txt /opt/requirements.txt
RUN python3 -m pip install --no-cache-dir "uv==${UV_VERSION}" \
 && uv venv --python "${PYTHON_VERSION}" /opt/trainer \
 && uv pip install --python /opt/trainer/bin/python --no-cache --compile-bytecode --require-hashes \
      --requirement /opt/requirements.txt

WORKDIR /app
COPY trainer /app/trainer
# The image is not finished unless the program starts.
RUN python -m trainer.task --help > /dev/null \
 && useradd --create-home --uid 10001 trainer
USER trainer

LABEL org.opencontainers.image.title="Trainmaster trainer" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"

ENTRYPOINT ["python", "-m", "trainer.task"]
