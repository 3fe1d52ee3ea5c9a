# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch and torchvision built from source for the site's GPUs, with the MPI backend
#
# Image pytorch-source for site leonardo, from defs/. Build it by hand, in this folder:
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

# openmpi: Open MPI from source, over UCX where the nodes have InfiniBand
# step 1fbf1b6a567bab90a7be1c596377b2c9ecc1d0d6c1feb05801a83f944cb18cde
COPY layers/openmpi/ /.sifwright/layers/openmpi/
RUN ["env", \
     "OPT_VERSION=5.0.10", \
     "OPT_FABRIC=infiniband", \
     "SOURCE_OPENMPI=archive https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-5.0.10.tar.bz2 5.0.10 0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6", \
     "bash", "/.sifwright/run", "openmpi"]
ENV PATH="/opt/openmpi/bin${PATH:+:$PATH}"

# pytorch-source: PyTorch built from its source, for the site's GPUs and MPI
# step 400c49daeac0aaf82046bceeeb1bf8080e2e784e60a29f07de2ffed7b02ed26b
COPY layers/pytorch-source/ /.sifwright/layers/pytorch-source/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_80", \
     "OPT_MPI_PATCH=2.0", \
     "OPT_SYSTEM_NCCL=true", \
     "OPT_NUMPY_LINE=numpy2-4", \
     "OPT_NUMPY=2.4.6", \
     "SOURCE_PYTORCH=git https://github.com/pytorch/pytorch.git v2.10.0 449b1768410104d3ed79d3bcfe4ba1d65c7f22c0 true", \
     "bash", "/.sifwright/run", "pytorch-source"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torchvision-source: torchvision built from its source, beside a torch that was
# step 2f6b549a89242f4a811c9ba37e307a00c9f813ee55d0792898506b36d1d49233
COPY layers/torchvision-source/ /.sifwright/layers/torchvision-source/
RUN ["env", \
     "OPT_VERSION=0.25.0", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_80", \
     "SOURCE_TORCHVISION=archive https://github.com/pytorch/vision/archive/v0.25.0.tar.gz 0.25.0 a7ac1b3ab489d71f6e27edfad1e27616e4b8a9b1517e60fce4a950600d3510e8", \
     "bash", "/.sifwright/run", "torchvision-source"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 29e9e5a5ba7b92373d31fbc4c95902044bcae3d580012518f62d0c312fad710c
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 71828ff74b9631021191ec6451cda22841da8ddc75f3f8a4299390d73d102bed
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
# step e1f92477f85d4ba7887a008d2f90a473ce48bf816b88244b6e6cf97d02ce7b13
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
      org.sifwright.site="leonardo" \
      org.sifwright.plan="e1f92477f85d4ba7887a008d2f90a473ce48bf816b88244b6e6cf97d02ce7b13" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.openmpi="1fbf1b6a567bab90a7be1c596377b2c9ecc1d0d6c1feb05801a83f944cb18cde" \
      org.sifwright.step.pytorch-source="400c49daeac0aaf82046bceeeb1bf8080e2e784e60a29f07de2ffed7b02ed26b" \
      org.sifwright.step.torchvision-source="2f6b549a89242f4a811c9ba37e307a00c9f813ee55d0792898506b36d1d49233" \
      org.sifwright.step.mpi4py="29e9e5a5ba7b92373d31fbc4c95902044bcae3d580012518f62d0c312fad710c" \
      org.sifwright.step.torch-extras="71828ff74b9631021191ec6451cda22841da8ddc75f3f8a4299390d73d102bed" \
      org.sifwright.step.run-scripts="e1f92477f85d4ba7887a008d2f90a473ce48bf816b88244b6e6cf97d02ce7b13" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.openmpi.version="5.0.10" \
      org.sifwright.option.openmpi.fabric="infiniband" \
      org.sifwright.option.pytorch-source.version="2.10.0" \
      org.sifwright.option.pytorch-source.vendor="nvidia" \
      org.sifwright.option.pytorch-source.arch="sm_80" \
      org.sifwright.option.pytorch-source.mpi-patch="2.0" \
      org.sifwright.option.pytorch-source.system-nccl="true" \
      org.sifwright.option.pytorch-source.numpy-line="numpy2-4" \
      org.sifwright.option.pytorch-source.numpy="2.4.6" \
      org.sifwright.option.torchvision-source.version="0.25.0" \
      org.sifwright.option.torchvision-source.vendor="nvidia" \
      org.sifwright.option.torchvision-source.arch="sm_80" \
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
