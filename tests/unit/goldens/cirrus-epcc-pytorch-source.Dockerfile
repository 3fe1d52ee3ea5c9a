# Written by sifwright with the files of this folder, which the next render replaces.
#
# PyTorch and torchvision built from source for the site's GPUs, with the MPI backend
#
# Image pytorch-source for site cirrus-epcc, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-source .        (or podman build, or buildah build)
FROM docker.io/nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-cuda: NVIDIA's Ubuntu image with the CUDA toolkit and cuDNN
# step 23e94fa46da123d10598253f8b21fcb22538b0ec48d1bacbf72880019ac17c9a
COPY layers/base-cuda/ /.sifwright/layers/base-cuda/
RUN ["env", \
     "OPT_CUDA=12.1.1", \
     "OPT_IMAGE=nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04", \
     "OPT_UPDATES=true", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-cuda"]
ENV CUDA_HOME="/usr/local/cuda" \
    PATH="/usr/local/cuda/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step f23f0f676e257c44607998d1577f327057c75c76b08112a20b1ccf183224e90a
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 487caecc42abac2fa1f82728012a6b9eb5a72cd8481f09c6ea490f77228d49c1
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# openmpi: Open MPI from source, over UCX where the nodes have InfiniBand
# step 112d1bba4b3246a5e6169b7ee3702891c25681abd9d07aceb5211f541f502121
COPY layers/openmpi/ /.sifwright/layers/openmpi/
RUN ["env", \
     "OPT_VERSION=5.0.10", \
     "OPT_FABRIC=infiniband", \
     "SOURCE_OPENMPI=archive https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-5.0.10.tar.bz2 5.0.10 0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6", \
     "bash", "/.sifwright/run", "openmpi"]
ENV PATH="/opt/openmpi/bin${PATH:+:$PATH}"

# pytorch-source: PyTorch built from its source, for the site's GPUs and MPI
# step 2d834db866c124765db00eed9f84c773ed9f8f1b3fcd8fe55b8164f956bdacd0
COPY layers/pytorch-source/ /.sifwright/layers/pytorch-source/
RUN ["env", \
     "OPT_VERSION=2.3.1", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_70", \
     "OPT_MPI_PATCH=2.0", \
     "OPT_SYSTEM_NCCL=true", \
     "OPT_NUMPY_LINE=numpy1", \
     "OPT_NUMPY=1.26.4", \
     "SOURCE_PYTORCH=git https://github.com/pytorch/pytorch.git v2.3.1 63d5e9221bedd1546b7d364b5ce4171547db12a9 true", \
     "bash", "/.sifwright/run", "pytorch-source"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torchvision-source: torchvision built from its source, beside a torch that was
# step ab01f5515b351ce4362c1e15fcdb9e73ec9f354a525937fe601a515f571208e1
COPY layers/torchvision-source/ /.sifwright/layers/torchvision-source/
RUN ["env", \
     "OPT_VERSION=0.18.1", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_70", \
     "SOURCE_TORCHVISION=archive https://github.com/pytorch/vision/archive/v0.18.1.tar.gz 0.18.1 347d472a9ceecc44e0bee1eda140d63cfaffc74a54ec07d4b98da7698ce75516", \
     "bash", "/.sifwright/run", "torchvision-source"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 615aca9c9157c8497fe252ea5008ec86625adea98083779b90eac44f286cc731
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step c74374ab477cb155d2ba08d27c499e86347253bc61a713d045fd06dd6a7f636c
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=", \
     "OPT_AUDIO=", \
     "OPT_TEXT=", \
     "OPT_NUMPY=1.26.4", \
     "OPT_TORCHMETRICS=1.0.3", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.7.2", \
     "OPT_VARIANT=", \
     "OPT_INDEX=", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step b698dea4e2845af0fe6b22935f3c867b25986065dab40623e2c8316db09445a2
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-source" \
      org.opencontainers.image.description="PyTorch and torchvision built from source for the site's GPUs, with the MPI backend" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="cirrus-epcc" \
      org.sifwright.plan="b698dea4e2845af0fe6b22935f3c867b25986065dab40623e2c8316db09445a2"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
