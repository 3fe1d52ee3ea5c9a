# Written by sifwright with the files of this folder, which the next render replaces.
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
# step cdcfb902a24589a5e348dd324e3656f793c5fd9b4e70c062e6138e9efc1b7df7
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
     "OPT_UPDATES=false", \
     "bash", "/.sifwright/run", "base-image"]
ENV PATH="/opt/base-image/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/base-image/activate" \
    PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 2989b166df3a77c119b066ce1d27110bae7a5f70bb2deea3c338a66edd6d8402
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.13.0", \
     "OPT_VARIANT=cpu", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step a3b01ee893b1873453f57516e08b77c590bc72961eb648e6df73817cd203bd0f
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
      org.sifwright.plan="a3b01ee893b1873453f57516e08b77c590bc72961eb648e6df73817cd203bd0f"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
