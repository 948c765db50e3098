# The trainer image. Build it with
#
#     docker build --tag trainer .          (BuildKit)
#     buildah build --tag trainer .         (no daemon, and with --isolation chroot no privileges)
#
# Two variants: VARIANT=cpu, and VARIANT=cuda, whose packages bring the CUDA libraries that TensorFlow was built for; the
# driver comes with the machine. Any image with Python 3.11 and pip will do as BASE_IMAGE, as will the one that
# trainmaster/deploy/local_image.py makes of Debian.
#
# Where packages come from is the builder's business and stays out of the image:
#     --secret id=pip,src=pip.conf --secret id=uv,src=uv.toml --secret id=ca,src=ca.pem
# as pip and uv read them, and the authorities to trust. All three may be left out.
ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}

ARG VARIANT=cpu

# Two memory arenas instead of eight for each processor: 80 MiB less in a replica, no slower.
ENV PATH=/opt/trainer/bin:$PATH \
    UV_PYTHON_INSTALL_DIR=/opt/python \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2

# The packages change seldom, the program often: two layers, and only the second is built again.
# uv goes where a newer Debian's own Python lets pip install, and away again: it is not needed afterwards.
# That the libraries load is known here, not by the first job.
COPY trainer/installer.txt trainer/requirements-${VARIANT}.txt /opt/
RUN --mount=type=secret,id=pip,target=/run/secrets/pip.conf \
    --mount=type=secret,id=uv,target=/run/secrets/uv.toml \
    --mount=type=secret,id=ca,target=/run/secrets/ca.pem \
    if [ -s /run/secrets/ca.pem ]; then export SSL_CERT_FILE=/run/secrets/ca.pem PIP_CERT=/run/secrets/ca.pem; fi \
 && if [ -s /run/secrets/pip.conf ]; then export PIP_CONFIG_FILE=/run/secrets/pip.conf; fi \
 && if [ -s /run/secrets/uv.toml ]; then export UV_CONFIG_FILE=/run/secrets/uv.toml; fi \
 && python3 -m pip install --no-cache-dir --target /tmp/uv --require-hashes --requirement /opt/installer.txt \
 && /tmp/uv/bin/uv venv --python 3.11 /opt/trainer \
 && /tmp/uv/bin/uv pip install --python /opt/trainer/bin/python --no-cache --compile-bytecode --require-hashes \
      --requirement "/opt/requirements-${VARIANT}.txt" \
 && rm -rf /tmp/uv \
 && /opt/trainer/bin/python -c "import tensorflow, tensorflow_datasets, tf_keras"

WORKDIR /app
COPY trainer /app/trainer
RUN python -m compileall -q trainer
# It runs as root, as Vertex AI's own containers do: the folder of a trial's metrics, /var/hypertune, is root's alone there
# (https://github.com/GoogleCloudPlatform/cloudml-hypertune/issues/6). The image is not finished unless the program starts.
RUN python -m trainer.task --help > /dev/null

# The revision is no build argument: a builder's cache may keep the layer of another one's (buildah 1.28 does).
# It comes with --label org.opencontainers.image.revision=…, from cloudbuild.yaml and trainmaster/deploy/local_image.py.
LABEL org.opencontainers.image.title="Trainmaster trainer" \
      org.opencontainers.image.licenses="Apache-2.0"

ENTRYPOINT ["python", "-m", "trainer.task"]
