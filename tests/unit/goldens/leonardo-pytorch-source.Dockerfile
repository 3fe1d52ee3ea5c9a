# Written by sifwright from defs/. The next render replaces this folder.
# Image pytorch-source for site leonardo: PyTorch and torchvision built from source for the site's GPUs, with the MPI backend
# Build it by hand, in this folder:  docker build -t pytorch-source .  (or podman build, or buildah build)
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

# openmpi: Open MPI from source, over UCX where the nodes have InfiniBand
# step 126b799aee55
COPY layers/openmpi/ /.sifwright/layers/openmpi/
RUN ["env", \
     "OPT_VERSION=5.0.10", \
     "OPT_FABRIC=infiniband", \
     "SOURCE_OPENMPI=archive https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-5.0.10.tar.bz2 5.0.10 0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6", \
     "bash", "/.sifwright/run", "openmpi"]
ENV PATH="/opt/openmpi/bin${PATH:+:$PATH}" \
    PRTE_MCA_plm="${PRTE_MCA_plm:-^slurm}" \
    PRTE_MCA_ras="${PRTE_MCA_ras:-^slurm}" \
    OMPI_MCA_plm="${OMPI_MCA_plm:-^slurm}" \
    OMPI_MCA_ras="${OMPI_MCA_ras:-^slurm}"

# nccl: NCCL from source in /opt/nccl, for PyTorch from source and for tests (NVIDIA/nccl)
# step c419d1fdd394
COPY layers/nccl/ /.sifwright/layers/nccl/
RUN ["env", \
     "OPT_VERSION=2.27.5", \
     "OPT_ARCH=sm_80", \
     "SOURCE_NCCL=git https://github.com/NVIDIA/nccl.git v2.27.5-1 3ea7eedf3b9b94f1d9f99f4e55536dfcbd23c1ca submodules=false", \
     "bash", "/.sifwright/run", "nccl"]

# pytorch-source: PyTorch built from its source, for the site's GPUs and MPI
# step bde6a6149ab0
COPY layers/pytorch-source/ /.sifwright/layers/pytorch-source/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_80", \
     "OPT_MPI_PATCH=2.0", \
     "OPT_SYSTEM_NCCL=true", \
     "OPT_OPENBLAS=true", \
     "OPT_NUMA=true", \
     "OPT_BUILD_VARIABLES=", \
     "OPT_NUMPY_LINE=numpy2-4", \
     "OPT_NUMPY=2.4.6", \
     "SOURCE_PYTORCH=git https://github.com/pytorch/pytorch.git v2.10.0 449b1768410104d3ed79d3bcfe4ba1d65c7f22c0 submodules=true", \
     "bash", "/.sifwright/run", "pytorch-source"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt" \
    PIP_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt"

# torchvision-source: torchvision built from its source, beside a torch that was
# step be86373c4fa3
COPY layers/torchvision-source/ /.sifwright/layers/torchvision-source/
RUN ["env", \
     "OPT_VERSION=0.25.0", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_80", \
     "OPT_IMAGE_FILES=true", \
     "SOURCE_TORCHVISION=archive https://github.com/pytorch/vision/archive/v0.25.0.tar.gz 0.25.0 a7ac1b3ab489d71f6e27edfad1e27616e4b8a9b1517e60fce4a950600d3510e8", \
     "bash", "/.sifwright/run", "torchvision-source"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 324f8cf0257a
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 68964a0ddec2
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=", \
     "OPT_AUDIO=", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_TENSORBOARD_PLUGIN_PROFILE=", \
     "OPT_TENSORBOARD_PLUGIN_WIT=", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=", \
     "OPT_INDEX=", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 0d9996c91cee
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# The tests and the plan stay in the image; nothing of the build does.
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-source" \
      org.opencontainers.image.description="PyTorch and torchvision built from source for the site's GPUs, with the MPI backend" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="leonardo" \
      org.sifwright.plan="0d9996c91cee67cd98b2b4bac8fbc7402add633126b36c43813b7179fc41e49d"
# Any user id works: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
