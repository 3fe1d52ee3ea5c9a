# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch and torchvision built from source for the site's GPUs, with the MPI backend
#
# Image pytorch-source for site alps, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-source .        (or podman build, or buildah build)
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

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step bb6708dd784bc45674c4f7b22eb85593803db62ce3df03758cc835a7cb9603b8
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=2.6.0", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=nvidia", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v2.6.0 5de2d6a2df83595bcc38531cb91bf59495559495 false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step 2d398dbeab418859633b18ba27159ba5d67f85b9cf3b01a596ccb72f80597cdc
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=3.4.3", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/3.4.3/mpich-3.4.3.tar.gz 3.4.3 8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-source: PyTorch built from its source, for the site's GPUs and MPI
# step 64684ad8fd54ea9781e7bcbd0ca793dfad85f55dc444cd395a8f6efe187b6c90
COPY layers/pytorch-source/ /.sifwright/layers/pytorch-source/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_90", \
     "OPT_MPI_PATCH=2.0", \
     "OPT_SYSTEM_NCCL=true", \
     "OPT_NUMPY_LINE=numpy2-4", \
     "OPT_NUMPY=2.4.6", \
     "SOURCE_PYTORCH=git https://github.com/pytorch/pytorch.git v2.10.0 449b1768410104d3ed79d3bcfe4ba1d65c7f22c0 true", \
     "bash", "/.sifwright/run", "pytorch-source"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torchvision-source: torchvision built from its source, beside a torch that was
# step 2d66bda3830cc269212dc15906caf2ef96cfc362078f1cfb48b9cb288992ce8f
COPY layers/torchvision-source/ /.sifwright/layers/torchvision-source/
RUN ["env", \
     "OPT_VERSION=0.25.0", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_90", \
     "SOURCE_TORCHVISION=archive https://github.com/pytorch/vision/archive/v0.25.0.tar.gz 0.25.0 a7ac1b3ab489d71f6e27edfad1e27616e4b8a9b1517e60fce4a950600d3510e8", \
     "bash", "/.sifwright/run", "torchvision-source"]

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step 48385cb1f47b40f47c36cdd2f24a4a3d4704a769c8e3529974ca6ff7cbda90fd
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=nvidia", \
     "OPT_VERSION=1.20.0", \
     "OPT_PROVEN=2.6.0 (CSCS Alps)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.20.0 a2a6d08ea98296f99596b5c18b30b8a20d74f609 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 2b6f40030520be3d8ff8e4dbe6b0e77e941f006f1b5da28f3705a71dd262a801
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step d01f8a3fd0a9bdc22f9f0abb135ae50d0144e9a0930214ec6903173497d16c9d
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
     "OPT_VARIANT=", \
     "OPT_INDEX=", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 62b3a9329ec04232e4df97277b5bfc078faa2474b4e5c8699c3827c9e13a6b8a
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
      org.sifwright.site="alps" \
      org.sifwright.plan="62b3a9329ec04232e4df97277b5bfc078faa2474b4e5c8699c3827c9e13a6b8a" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.libfabric="bb6708dd784bc45674c4f7b22eb85593803db62ce3df03758cc835a7cb9603b8" \
      org.sifwright.step.mpich="2d398dbeab418859633b18ba27159ba5d67f85b9cf3b01a596ccb72f80597cdc" \
      org.sifwright.step.pytorch-source="64684ad8fd54ea9781e7bcbd0ca793dfad85f55dc444cd395a8f6efe187b6c90" \
      org.sifwright.step.torchvision-source="2d66bda3830cc269212dc15906caf2ef96cfc362078f1cfb48b9cb288992ce8f" \
      org.sifwright.step.aws-ofi-nccl="48385cb1f47b40f47c36cdd2f24a4a3d4704a769c8e3529974ca6ff7cbda90fd" \
      org.sifwright.step.mpi4py="2b6f40030520be3d8ff8e4dbe6b0e77e941f006f1b5da28f3705a71dd262a801" \
      org.sifwright.step.torch-extras="d01f8a3fd0a9bdc22f9f0abb135ae50d0144e9a0930214ec6903173497d16c9d" \
      org.sifwright.step.run-scripts="62b3a9329ec04232e4df97277b5bfc078faa2474b4e5c8699c3827c9e13a6b8a" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="2.6.0" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="nvidia" \
      org.sifwright.option.mpich.version="3.4.3" \
      org.sifwright.option.pytorch-source.version="2.10.0" \
      org.sifwright.option.pytorch-source.vendor="nvidia" \
      org.sifwright.option.pytorch-source.arch="sm_90" \
      org.sifwright.option.pytorch-source.mpi-patch="2.0" \
      org.sifwright.option.pytorch-source.system-nccl="true" \
      org.sifwright.option.pytorch-source.numpy-line="numpy2-4" \
      org.sifwright.option.pytorch-source.numpy="2.4.6" \
      org.sifwright.option.torchvision-source.version="0.25.0" \
      org.sifwright.option.torchvision-source.vendor="nvidia" \
      org.sifwright.option.torchvision-source.arch="sm_90" \
      org.sifwright.option.aws-ofi-nccl.gpu="nvidia" \
      org.sifwright.option.aws-ofi-nccl.version="1.20.0" \
      org.sifwright.option.aws-ofi-nccl.provider="cxi" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
