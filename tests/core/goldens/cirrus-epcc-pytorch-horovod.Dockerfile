# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch with Horovod and mpi4py over the MPI that suits the site
#
# Image pytorch-horovod for site cirrus-epcc, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-horovod .        (or podman build, or buildah build)
FROM docker.io/nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-cuda: NVIDIA's Ubuntu image with the CUDA toolkit and cuDNN
# step e9d95221e70cc6425863e2e468906e1ec9e62f58b1bc2ade932846078f57cb58
COPY layers/base-cuda/ /.sifwright/layers/base-cuda/
RUN ["env", \
     "OPT_CUDA=12.1.1", \
     "OPT_IMAGE=nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-cuda"]
ENV CUDA_HOME="/usr/local/cuda" \
    PATH="/usr/local/cuda/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step 42e84e294be49449e2a49f1f28fb6c568f7f8106682d395adb07619d3ceabca8
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step f31687415e480bf33122ddcd82eb5b45d1984f3052093a3b762f25d0cb4b5015
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step fa19abbeac45c596666fb35d11b1500877808cedc8acc956188a0b034ef930d5
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.3.1", \
     "OPT_VARIANT=cu121", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 878488e3c8ac2d638ad23455d56bc03ecd9743215314a4a356a0a4a18c54978e
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.18.1", \
     "OPT_AUDIO=2.3.1", \
     "OPT_TEXT=0.18.0", \
     "OPT_NUMPY=1.26.4", \
     "OPT_TORCHMETRICS=1.0.3", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.7.2", \
     "OPT_VARIANT=cu121", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# openmpi: Open MPI from source, over UCX where the nodes have InfiniBand
# step c8a12395e19347de7e5f7e561057133556e1dcd878adaca224cda40c5d4a7d7e
COPY layers/openmpi/ /.sifwright/layers/openmpi/
RUN ["env", \
     "OPT_VERSION=5.0.10", \
     "OPT_FABRIC=infiniband", \
     "SOURCE_OPENMPI=archive https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-5.0.10.tar.bz2 5.0.10 0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6", \
     "bash", "/.sifwright/run", "openmpi"]
ENV PATH="/opt/openmpi/bin${PATH:+:$PATH}"

# mpi4py: mpi4py, compiled against the image's MPI
# step 84814c0ca1bf10d707199f38c12ad49aba544927a6ea9c1054070d44db795f8c
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# horovod: Horovod for PyTorch, over MPI, Gloo and on NVIDIA GPUs NCCL
# step 9e6e4623d9e1437fa1e8d1653c4bb90a9390938ae997aa76f674d6b190d60d77
COPY layers/horovod/ /.sifwright/layers/horovod/
RUN ["env", \
     "OPT_VERSION=0.28.1", \
     "OPT_PATCH=0.28.1", \
     "OPT_CXX=17", \
     "OPT_MPI=openmpi", \
     "OPT_GLOO=true", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_70", \
     "SOURCE_HOROVOD=pip horovod 0.28.1 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0", \
     "bash", "/.sifwright/run", "horovod"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 7bb917387ed674d6b09d5d1a0e6184330ddffbb4f1130d5d906991949fbc7cef
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
      org.sifwright.site="cirrus-epcc" \
      org.sifwright.plan="7bb917387ed674d6b09d5d1a0e6184330ddffbb4f1130d5d906991949fbc7cef" \
      org.sifwright.step.base-cuda="e9d95221e70cc6425863e2e468906e1ec9e62f58b1bc2ade932846078f57cb58" \
      org.sifwright.step.python-venv="42e84e294be49449e2a49f1f28fb6c568f7f8106682d395adb07619d3ceabca8" \
      org.sifwright.step.build-tools="f31687415e480bf33122ddcd82eb5b45d1984f3052093a3b762f25d0cb4b5015" \
      org.sifwright.step.pytorch-wheel="fa19abbeac45c596666fb35d11b1500877808cedc8acc956188a0b034ef930d5" \
      org.sifwright.step.torch-extras="878488e3c8ac2d638ad23455d56bc03ecd9743215314a4a356a0a4a18c54978e" \
      org.sifwright.step.openmpi="c8a12395e19347de7e5f7e561057133556e1dcd878adaca224cda40c5d4a7d7e" \
      org.sifwright.step.mpi4py="84814c0ca1bf10d707199f38c12ad49aba544927a6ea9c1054070d44db795f8c" \
      org.sifwright.step.horovod="9e6e4623d9e1437fa1e8d1653c4bb90a9390938ae997aa76f674d6b190d60d77" \
      org.sifwright.step.run-scripts="7bb917387ed674d6b09d5d1a0e6184330ddffbb4f1130d5d906991949fbc7cef" \
      org.sifwright.option.base-cuda.cuda="12.1.1" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04" \
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
      org.sifwright.option.torch-extras.scikit-learn="1.7.2" \
      org.sifwright.option.torch-extras.variant="cu121" \
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
      org.sifwright.option.horovod.arch="sm_70"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
