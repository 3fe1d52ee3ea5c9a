# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch with Horovod and mpi4py over the MPI that suits the site
#
# Image pytorch-horovod for site local, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-horovod .        (or podman build, or buildah build)
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
# step 2866e37de56c9b4e068f3f6eefd7e0d0d0d8982daa79bd1c08c207afeffc3c28
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.13.0", \
     "OPT_VARIANT=cpu", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 00e025921f2e4054ac4c317feb226ff89cb8f1aae08c2dc0ce42e39952c268bb
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=", \
     "OPT_AUDIO=", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cpu", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# mpich-wheel: MPICH from its binary wheel, for sites without an MPI of their own that would replace it
# step 36ede4a380f2eb73a0d8ca2fe79b6dbf251554b6e557b1f0f7e76e7cfe5c53a0
COPY layers/mpich-wheel/ /.sifwright/layers/mpich-wheel/
RUN ["env", \
     "OPT_VERSION=5.0.1", \
     "bash", "/.sifwright/run", "mpich-wheel"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# mpi4py: mpi4py, compiled against the image's MPI
# step 6ae79d3623ada8b8e3eac5963a4ff5963914348fc204a0d7f4971850899755ac
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# horovod: Horovod for PyTorch, over MPI, Gloo and on NVIDIA GPUs NCCL
# step 4039207884e0167ab47efa87a5a82896d752005e11e426082879eb25bdf1b40d
COPY layers/horovod/ /.sifwright/layers/horovod/
RUN ["env", \
     "OPT_VERSION=0.28.1", \
     "OPT_PATCH=0.28.1", \
     "OPT_CXX=17", \
     "OPT_MPI=mpich", \
     "OPT_GLOO=true", \
     "OPT_VENDOR=cpu", \
     "OPT_ARCH=", \
     "SOURCE_HOROVOD=pip horovod 0.28.1 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0", \
     "bash", "/.sifwright/run", "horovod"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step eed46d09424b1ac9cd69bb1999e60dbd8e92628e09c2790c96ecbef2a30c2ed2
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-horovod" \
      org.opencontainers.image.description="PyTorch with Horovod and mpi4py over the MPI that suits the site" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="local" \
      org.sifwright.plan="eed46d09424b1ac9cd69bb1999e60dbd8e92628e09c2790c96ecbef2a30c2ed2" \
      org.sifwright.step.base-debian="0e3cbf129acb8dd471c2c1445d458118391233369541ea5c4e5bdf4c48ab4e9f" \
      org.sifwright.step.python-venv="e853097beddbb468c8144c6315aacfd0f1c0b31614975c70163569923d946b04" \
      org.sifwright.step.build-tools="359b0e426bf79d75a3d42548555d1cf852a09c2cae3841856e51e5e7e0eefe29" \
      org.sifwright.step.pytorch-wheel="2866e37de56c9b4e068f3f6eefd7e0d0d0d8982daa79bd1c08c207afeffc3c28" \
      org.sifwright.step.torch-extras="00e025921f2e4054ac4c317feb226ff89cb8f1aae08c2dc0ce42e39952c268bb" \
      org.sifwright.step.mpich-wheel="36ede4a380f2eb73a0d8ca2fe79b6dbf251554b6e557b1f0f7e76e7cfe5c53a0" \
      org.sifwright.step.mpi4py="6ae79d3623ada8b8e3eac5963a4ff5963914348fc204a0d7f4971850899755ac" \
      org.sifwright.step.horovod="4039207884e0167ab47efa87a5a82896d752005e11e426082879eb25bdf1b40d" \
      org.sifwright.step.run-scripts="eed46d09424b1ac9cd69bb1999e60dbd8e92628e09c2790c96ecbef2a30c2ed2" \
      org.sifwright.option.base-debian.suite="bookworm" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.pytorch-wheel.version="2.13.0" \
      org.sifwright.option.pytorch-wheel.variant="cpu" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cpu" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.mpich-wheel.version="5.0.1" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.horovod.version="0.28.1" \
      org.sifwright.option.horovod.patch="0.28.1" \
      org.sifwright.option.horovod.cxx="17" \
      org.sifwright.option.horovod.mpi="mpich" \
      org.sifwright.option.horovod.gloo="true" \
      org.sifwright.option.horovod.vendor="cpu"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
