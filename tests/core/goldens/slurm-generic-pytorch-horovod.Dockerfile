# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch with Horovod and mpi4py over the MPI that suits the site
#
# Image pytorch-horovod for site slurm-generic, from defs/. Build it by hand, in this folder:
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
# step d56b207d248271b26991e1bf881f7b8d8652e002514753ade68db7212ed226f2
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.13.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step b9b37eccdc1b8f6121910b6510aa21abac783470c9c6294523f6cb6496379492
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

# mpich-wheel: MPICH from its binary wheel, for sites without an MPI of their own that would replace it
# step 1512bae5c9a57db2941be9c1b91d39e8b8c605822c1e29ae0b6682a11986524a
COPY layers/mpich-wheel/ /.sifwright/layers/mpich-wheel/
RUN ["env", \
     "OPT_VERSION=5.0.1", \
     "bash", "/.sifwright/run", "mpich-wheel"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# mpi4py: mpi4py, compiled against the image's MPI
# step 12c3af40a838803245ee2e5797b4fc098ebcaa06ec7dc1a0f2495899a29ca6f3
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# horovod: Horovod for PyTorch, over MPI, Gloo and on NVIDIA GPUs NCCL
# step a12d2380b9e191a1b2b95f33e4c6159287ee17a43bcbd81232b9aeddc3f5e278
COPY layers/horovod/ /.sifwright/layers/horovod/
RUN ["env", \
     "OPT_VERSION=0.28.1", \
     "OPT_PATCH=0.28.1", \
     "OPT_CXX=17", \
     "OPT_MPI=mpich", \
     "OPT_GLOO=true", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=", \
     "SOURCE_HOROVOD=pip horovod 0.28.1 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0", \
     "bash", "/.sifwright/run", "horovod"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step c6c9eace500ba93db6b655334842d1927dc69f5d240532da73c414aaafc9599a
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
      org.sifwright.site="slurm-generic" \
      org.sifwright.plan="c6c9eace500ba93db6b655334842d1927dc69f5d240532da73c414aaafc9599a" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.pytorch-wheel="d56b207d248271b26991e1bf881f7b8d8652e002514753ade68db7212ed226f2" \
      org.sifwright.step.torch-extras="b9b37eccdc1b8f6121910b6510aa21abac783470c9c6294523f6cb6496379492" \
      org.sifwright.step.mpich-wheel="1512bae5c9a57db2941be9c1b91d39e8b8c605822c1e29ae0b6682a11986524a" \
      org.sifwright.step.mpi4py="12c3af40a838803245ee2e5797b4fc098ebcaa06ec7dc1a0f2495899a29ca6f3" \
      org.sifwright.step.horovod="a12d2380b9e191a1b2b95f33e4c6159287ee17a43bcbd81232b9aeddc3f5e278" \
      org.sifwright.step.run-scripts="c6c9eace500ba93db6b655334842d1927dc69f5d240532da73c414aaafc9599a" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
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
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.mpich-wheel.version="5.0.1" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.horovod.version="0.28.1" \
      org.sifwright.option.horovod.patch="0.28.1" \
      org.sifwright.option.horovod.cxx="17" \
      org.sifwright.option.horovod.mpi="mpich" \
      org.sifwright.option.horovod.gloo="true" \
      org.sifwright.option.horovod.vendor="nvidia"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
