# The project in an image, for processors or, with LOCK=requirements-gpu.lock, for NVIDIA's GPUs:
#
#   docker build --tag recurrent-replay .
#   docker run --rm --volume "$PWD/runs:/work/runs" recurrent-replay train --agent=r2d2 --env=catch --run_dir=runs/catch
#
# Everything is pinned, the project comes last, and Python itself gets the signals. launch/gcp/images.py knows the same
# of the images of Google Cloud's hosts, and a test compares.
FROM python:3.11-slim-bookworm
ARG LOCK=requirements.lock
# CUDA is in the lock, and the driver is the host's.
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 NVIDIA_DRIVER_CAPABILITIES=compute,utility LD_LIBRARY_PATH=/usr/local/nvidia/lib64
COPY requirements*.lock /locks/
WORKDIR /locks
RUN sed -n '/^setuptools==/,/[^\\]$/p' $LOCK > setuptools.lock \
 && python -m pip install --no-deps --require-hashes -r setuptools.lock \
 && python -m pip install --no-deps --require-hashes --no-build-isolation --use-pep517 -r $LOCK \
 && python -m pip install --no-deps --require-hashes --python-version 3.10 --only-binary :all: \
    --target "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    -r requirements-launchpad.lock
COPY . /project
RUN python -m pip install --no-deps --no-index --no-build-isolation /project
WORKDIR /work
ENTRYPOINT ["recurrent-replay"]
