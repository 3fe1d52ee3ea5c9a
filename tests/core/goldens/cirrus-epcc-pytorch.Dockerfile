# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one
#
# Image pytorch for site cirrus-epcc, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch .        (or podman build, or buildah build)
FROM docker.io/library/debian:bookworm-slim AS root
COPY runner/ /.sifwright/
RUN ["bash", "/.sifwright/make-root", "bookworm", "ca-certificates", ""]

FROM scratch
COPY --from=root /rootfs/ /
ENV PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
COPY runner/ /.sifwright/

# base-debian: A small Debian system, made with debootstrap
# step 0e3cbf129acb8dd471c2c1445d458118391233369541ea5c4e5bdf4c48ab4e9f
COPY layers/base-debian/ /.sifwright/layers/base-debian/
RUN ["env", \
     "OPT_SUITE=bookworm", \
     "OPT_MIRROR=", \
     "OPT_IMAGE_MIRROR=", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-debian"]

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step e853097beddbb468c8144c6315aacfd0f1c0b31614975c70163569923d946b04
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 359b0e426bf79d75a3d42548555d1cf852a09c2cae3841856e51e5e7e0eefe29
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 0c8e2c0bae34f0c3c9903be9fbe553e411931142c165775dfda7aeb65e1359d3
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.3.1", \
     "OPT_VARIANT=cu121", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 1c9aa8a290faf9d079190ee3bd94ff07afaaeb61b34b793363c36228ba1a6a02
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.18.1", \
     "OPT_AUDIO=2.3.1", \
     "OPT_TEXT=0.18.0", \
     "OPT_NUMPY=1.26.4", \
     "OPT_TORCHMETRICS=1.0.3", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu121", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step c20b8ad5b77f14ba312b19f40fb72a8658a926ffbb92d5154e0f3f7466745259
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch" \
      org.opencontainers.image.description="PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="cirrus-epcc" \
      org.sifwright.plan="c20b8ad5b77f14ba312b19f40fb72a8658a926ffbb92d5154e0f3f7466745259" \
      org.sifwright.step.base-debian="0e3cbf129acb8dd471c2c1445d458118391233369541ea5c4e5bdf4c48ab4e9f" \
      org.sifwright.step.python-venv="e853097beddbb468c8144c6315aacfd0f1c0b31614975c70163569923d946b04" \
      org.sifwright.step.build-tools="359b0e426bf79d75a3d42548555d1cf852a09c2cae3841856e51e5e7e0eefe29" \
      org.sifwright.step.pytorch-wheel="0c8e2c0bae34f0c3c9903be9fbe553e411931142c165775dfda7aeb65e1359d3" \
      org.sifwright.step.torch-extras="1c9aa8a290faf9d079190ee3bd94ff07afaaeb61b34b793363c36228ba1a6a02" \
      org.sifwright.step.run-scripts="c20b8ad5b77f14ba312b19f40fb72a8658a926ffbb92d5154e0f3f7466745259" \
      org.sifwright.option.base-debian.suite="bookworm" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.pytorch-wheel.version="2.3.1" \
      org.sifwright.option.pytorch-wheel.variant="cu121" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.vision="0.18.1" \
      org.sifwright.option.torch-extras.audio="2.3.1" \
      org.sifwright.option.torch-extras.text="0.18.0" \
      org.sifwright.option.torch-extras.numpy="1.26.4" \
      org.sifwright.option.torch-extras.torchmetrics="1.0.3" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cu121" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
