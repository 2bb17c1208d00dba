# The project in an image, for processors or, with DEVICE=gpu, for NVIDIA's GPUs:
#
#   docker build --tag recurrent-replay --build-arg DEVICE=cpu .
#   docker run --rm --volume "$PWD/runs:/work/runs" recurrent-replay train --agent=r2d2 --env=catch --run_dir=runs/catch
#
# Everything is pinned, the project comes last, and Python itself gets the signals. launch/gcp/images.py knows the same
# of the images of Google Cloud's hosts, and a test compares.
ARG DEVICE=cpu

FROM python:3.10-slim-bookworm AS cpu
ENV LOCK=requirements.lock

FROM nvidia/cuda:11.8.0-base-ubuntu22.04 AS gpu
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3.10-venv libpython3.10 \
 && rm -rf /var/lib/apt/lists/* \
 && python3.10 -m venv /venv
ENV LOCK=requirements-gpu.lock \
    PATH=/venv/bin:$PATH \
    SITE=/venv/lib/python3.10/site-packages/nvidia
# TensorFlow finds the lock's CUDA on the loader's path only; the driver is the host's.
ENV LD_LIBRARY_PATH=$SITE/cublas/lib:$SITE/cuda_cupti/lib:$SITE/cuda_runtime/lib:$SITE/cudnn/lib:$SITE/cufft/lib:$SITE/curand/lib:$SITE/cusolver/lib:$SITE/cusparse/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64

FROM ${DEVICE}
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1
COPY requirements*.lock /locks/
WORKDIR /locks
RUN sed -n '/^setuptools==/,/[^\\]$/p' $LOCK > setuptools.lock \
 && python -m pip install --no-deps --require-hashes -r setuptools.lock \
 && python -m pip install --no-deps --require-hashes --no-build-isolation --use-pep517 -r $LOCK
COPY . /project
RUN python -m pip install --no-deps --no-index --no-build-isolation /project
WORKDIR /work
ENTRYPOINT ["recurrent-replay"]
