# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts
#
# Image base-image for site local, from defs/. Build it by hand, in this folder:
#   docker build -t base-image .        (or podman build, or buildah build)
FROM docker.io/library/python:3.12-slim-bookworm
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-image: Somebody else's image, such as pytorch/pytorch, NVIDIA's (NGC) or AMD's rocm/pytorch, with what is in it
# step 83a1244ff4a4de16c917d2a8e6b61efe9522290ec22a46215bf1452f2c31748d
COPY layers/base-image/ /.sifwright/layers/base-image/
RUN ["env", \
     "OPT_FROM=docker://python:3.12-slim-bookworm", \
     "OPT_PYTHON=3.12", \
     "OPT_TORCH=", \
     "OPT_CUDA=", \
     "OPT_ROCM=", \
     "OPT_PROGRAM=/usr/local/bin/python3", \
     "OPT_PLUGINS=", \
     "OPT_UNSET=", \
     "bash", "/.sifwright/run", "base-image"]
ENV PATH="/opt/base-image/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/base-image/activate" \
    PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 03f42adb3030f481f1c70fc103fd929ce66ecc832741bd16e3ff50010618eeee
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.13.0", \
     "OPT_VARIANT=cpu", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step ddde447531da9f748190731aa6639cd566bf840badc8726ffc7669258a81f57b
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="base-image" \
      org.opencontainers.image.description="Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="local" \
      org.sifwright.plan="ddde447531da9f748190731aa6639cd566bf840badc8726ffc7669258a81f57b" \
      org.sifwright.step.base-image="83a1244ff4a4de16c917d2a8e6b61efe9522290ec22a46215bf1452f2c31748d" \
      org.sifwright.step.pytorch-wheel="03f42adb3030f481f1c70fc103fd929ce66ecc832741bd16e3ff50010618eeee" \
      org.sifwright.step.run-scripts="ddde447531da9f748190731aa6639cd566bf840badc8726ffc7669258a81f57b" \
      org.sifwright.option.base-image.from="docker://python:3.12-slim-bookworm" \
      org.sifwright.option.base-image.python="3.12" \
      org.sifwright.option.base-image.program="/usr/local/bin/python3" \
      org.sifwright.option.pytorch-wheel.version="2.13.0" \
      org.sifwright.option.pytorch-wheel.variant="cpu" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
