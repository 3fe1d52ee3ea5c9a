# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one
#
# Image pytorch for site slurm-generic, from defs/. Build it by hand, in this folder:
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
# step 8a88cdb2529bf0ae0f98b786b304930105f6f8c02db6869e24d367b295f533b3
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.13.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step ad14ee586df5fe16eb7e4a885377edf183476f43d9f32e9716b099bb1651d848
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.28.0", \
     "OPT_AUDIO=", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 8919906241ad333964c1ed3b7d1597442b6f327bc4ca7b04ad607b58a89cdd98
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
      org.sifwright.site="slurm-generic" \
      org.sifwright.plan="8919906241ad333964c1ed3b7d1597442b6f327bc4ca7b04ad607b58a89cdd98" \
      org.sifwright.step.base-debian="0e3cbf129acb8dd471c2c1445d458118391233369541ea5c4e5bdf4c48ab4e9f" \
      org.sifwright.step.python-venv="e853097beddbb468c8144c6315aacfd0f1c0b31614975c70163569923d946b04" \
      org.sifwright.step.build-tools="359b0e426bf79d75a3d42548555d1cf852a09c2cae3841856e51e5e7e0eefe29" \
      org.sifwright.step.pytorch-wheel="8a88cdb2529bf0ae0f98b786b304930105f6f8c02db6869e24d367b295f533b3" \
      org.sifwright.step.torch-extras="ad14ee586df5fe16eb7e4a885377edf183476f43d9f32e9716b099bb1651d848" \
      org.sifwright.step.run-scripts="8919906241ad333964c1ed3b7d1597442b6f327bc4ca7b04ad607b58a89cdd98" \
      org.sifwright.option.base-debian.suite="bookworm" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.pytorch-wheel.version="2.13.0" \
      org.sifwright.option.pytorch-wheel.variant="cu126" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.vision="0.28.0" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cu126" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
