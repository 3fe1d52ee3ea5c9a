# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch with Horovod and mpi4py over the MPI that suits the site
#
# Image pytorch-horovod for site leonardo, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-horovod .        (or podman build, or buildah build)
FROM docker.io/nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-cuda: NVIDIA's Ubuntu image with the CUDA toolkit and cuDNN
# step 97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7
COPY layers/base-cuda/ /.sifwright/layers/base-cuda/
RUN ["env", \
     "OPT_CUDA=12.6.3", \
     "OPT_IMAGE=nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-cuda"]
ENV CUDA_HOME="/usr/local/cuda" \
    PATH="/usr/local/cuda/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step d357dfb91862186cd859d1f07830502642bf75c79fa61401881b003e365d8622
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 8bd1791a43c024bfc334b77702c6b59c18597ae9c4b7670dc1b7d4e1c1abcaf7
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.25.0", \
     "OPT_AUDIO=2.10.0", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# openmpi: Open MPI from source, over UCX where the nodes have InfiniBand
# step e00a3d2f49f7e82514a15528c7e18a0e3358d143358c31cd73781b13a2a1e671
COPY layers/openmpi/ /.sifwright/layers/openmpi/
RUN ["env", \
     "OPT_VERSION=5.0.10", \
     "OPT_FABRIC=infiniband", \
     "SOURCE_OPENMPI=archive https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-5.0.10.tar.bz2 5.0.10 0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6", \
     "bash", "/.sifwright/run", "openmpi"]
ENV PATH="/opt/openmpi/bin${PATH:+:$PATH}"

# mpi4py: mpi4py, compiled against the image's MPI
# step 67ef50c81df3446263465295d62a3b6b6ab12e7e58b7ccfd658e1e6214a77bd8
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# horovod: Horovod for PyTorch, over MPI, Gloo and on NVIDIA GPUs NCCL
# step 610c0ea02e7d525d7e9a51f68f6a023e12de5d406de70c29e0cddd94ab7e5fd1
COPY layers/horovod/ /.sifwright/layers/horovod/
RUN ["env", \
     "OPT_VERSION=0.28.1", \
     "OPT_PATCH=0.28.1", \
     "OPT_CXX=17", \
     "OPT_MPI=openmpi", \
     "OPT_GLOO=true", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_80", \
     "SOURCE_HOROVOD=pip horovod 0.28.1 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0", \
     "bash", "/.sifwright/run", "horovod"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 385b6cad6993f3aecd497cae493a0255c06fa6d9bf2dedbb78ff6817e7e8a532
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
      org.sifwright.site="leonardo" \
      org.sifwright.plan="385b6cad6993f3aecd497cae493a0255c06fa6d9bf2dedbb78ff6817e7e8a532" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.pytorch-wheel="d357dfb91862186cd859d1f07830502642bf75c79fa61401881b003e365d8622" \
      org.sifwright.step.torch-extras="8bd1791a43c024bfc334b77702c6b59c18597ae9c4b7670dc1b7d4e1c1abcaf7" \
      org.sifwright.step.openmpi="e00a3d2f49f7e82514a15528c7e18a0e3358d143358c31cd73781b13a2a1e671" \
      org.sifwright.step.mpi4py="67ef50c81df3446263465295d62a3b6b6ab12e7e58b7ccfd658e1e6214a77bd8" \
      org.sifwright.step.horovod="610c0ea02e7d525d7e9a51f68f6a023e12de5d406de70c29e0cddd94ab7e5fd1" \
      org.sifwright.step.run-scripts="385b6cad6993f3aecd497cae493a0255c06fa6d9bf2dedbb78ff6817e7e8a532" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.pytorch-wheel.version="2.10.0" \
      org.sifwright.option.pytorch-wheel.variant="cu126" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.vision="0.25.0" \
      org.sifwright.option.torch-extras.audio="2.10.0" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cu126" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.openmpi.version="5.0.10" \
      org.sifwright.option.openmpi.fabric="infiniband" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.horovod.version="0.28.1" \
      org.sifwright.option.horovod.patch="0.28.1" \
      org.sifwright.option.horovod.cxx="17" \
      org.sifwright.option.horovod.mpi="openmpi" \
      org.sifwright.option.horovod.gloo="true" \
      org.sifwright.option.horovod.vendor="nvidia" \
      org.sifwright.option.horovod.arch="sm_80"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
