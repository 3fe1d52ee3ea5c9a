# Written by sifwright from defs/. The next render replaces this folder.
# Image pytorch-horovod for site derecho: PyTorch with Horovod and mpi4py over the MPI that suits the site
# Build it by hand, in this folder:  docker build -t pytorch-horovod .  (or podman build, or buildah build)
FROM docker.io/nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-cuda: NVIDIA's Ubuntu image with the CUDA toolkit and cuDNN
# step 12ba0b395eb1
COPY layers/base-cuda/ /.sifwright/layers/base-cuda/
RUN ["env", \
     "OPT_CUDA=12.6.3", \
     "OPT_IMAGE=nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04", \
     "OPT_UPDATES=true", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-cuda"]
ENV CUDA_HOME="/usr/local/cuda" \
    PATH="/usr/local/cuda/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step 0b1a7fa89834
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 000d980a08ce
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 5637ac7c967e
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.8.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt" \
    PIP_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 9b3310278155
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.23.0", \
     "OPT_AUDIO=2.8.0", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.2.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_TENSORBOARD_PLUGIN_PROFILE=", \
     "OPT_TENSORBOARD_PLUGIN_WIT=", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step 345e836d6a34
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=1.22.0", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=nvidia", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v1.22.0 159219639b7fd69d140892120121bbb4d694e295 submodules=false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 submodules=false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb submodules=false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe submodules=false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric (aws/aws-ofi-nccl)
# step 3d759127337c
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=nvidia", \
     "OPT_VERSION=1.20.0", \
     "OPT_PROVEN=2.6.0 (CSCS Alps)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.20.0 a2a6d08ea98296f99596b5c18b30b8a20d74f609 submodules=true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step 88fb7f7174cf
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=3.4.3", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/3.4.3/mpich-3.4.3.tar.gz 3.4.3 8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}" \
    HYDRA_LAUNCHER="${HYDRA_LAUNCHER:-fork}"

# mpi4py: mpi4py, compiled against the image's MPI
# step 6eb8b05a307a
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# horovod: Horovod for PyTorch, over MPI, Gloo and on GPUs NCCL or RCCL
# step c3c8e6e94d45
COPY layers/horovod/ /.sifwright/layers/horovod/
RUN ["env", \
     "OPT_VERSION=0.28.1", \
     "OPT_PATCH=0.28.1", \
     "OPT_CXX=17", \
     "OPT_MPI=mpich", \
     "OPT_GLOO=true", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_80", \
     "SOURCE_HOROVOD=pip horovod 0.28.1 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0", \
     "bash", "/.sifwright/run", "horovod"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 2fef917af813
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# The tests and the plan stay in the image; nothing of the build does.
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-horovod" \
      org.opencontainers.image.description="PyTorch with Horovod and mpi4py over the MPI that suits the site" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="derecho" \
      org.sifwright.plan="2fef917af81320edf9ecf376206b26a90a78ae68157012e21b90651a38c23870"
# Any user id works: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
