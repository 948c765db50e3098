# The trainer image. Build it with
#
#     docker build --tag trainer .          (BuildKit)
#     buildah build --tag trainer .         (no daemon, and with --isolation chroot no privileges)
#
# VARIANT is cpu or cuda. The cuda packages include the CUDA libraries that TensorFlow was built for; the machine
# provides the driver. BASE_IMAGE can be any image with Python 3.11 and pip, or the Debian one that
# trainmaster/deploy/local_image.py makes. `make lock` renews the digest of the one named here.
#
# Secrets configure the package sources, so that they stay out of the image:
#     --secret id=pip,src=pip.conf --secret id=uv,src=uv.toml --secret id=ca,src=ca.pem
# They are the configuration files of pip and uv, and the certificate authorities to trust. All three are optional.
ARG BASE_IMAGE=python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff
FROM ${BASE_IMAGE}

ARG VARIANT=cpu

# Two memory arenas instead of eight per processor: a replica uses 80 MiB less and is not slower.
ENV PATH=/opt/trainer/bin:$PATH \
    UV_PYTHON_INSTALL_DIR=/opt/python \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2

# The packages change rarely, the program often: two layers, so that usually only the second is rebuilt.
# uv is installed to a separate folder, because newer Debians do not let pip install into the system's Python, and is
# removed afterwards. The import checks here, rather than in the first job, that the libraries load.
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

# The trainer does not use trainer/launch, which starts programs of other frameworks: --build-arg LAUNCHER=yes keeps it.
ARG LAUNCHER=no
WORKDIR /app
# A script runs in the folder that it was unpacked to, and imports the package from here; its own modules come first.
ENV PYTHONPATH=/app
COPY trainer /app/trainer
RUN if [ "${LAUNCHER}" != yes ]; then rm -r trainer/launch; fi && python -m compileall -q trainer
# The image runs as root, as Vertex AI's own containers do: only root can write to the folder of a trial's metrics,
# /var/hypertune (https://github.com/GoogleCloudPlatform/cloudml-hypertune/issues/6). The build fails unless the program
# starts.
RUN python -m trainer.task --help > /dev/null

# The revision is not a build argument, because a builder may reuse the cached layer of another revision (buildah 1.28
# does). cloudbuild.yaml and trainmaster/deploy/local_image.py set it with --label org.opencontainers.image.revision=….
# On the local stack, trainstack.packages stands for the RUN lines above.
LABEL org.opencontainers.image.title="Trainmaster trainer" \
      org.opencontainers.image.licenses="Apache-2.0" \
      trainstack.packages="tensorflow tensorboard tensorflow-datasets tf-keras"

ENTRYPOINT ["python", "-m", "trainer.task"]
