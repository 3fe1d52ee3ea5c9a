# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one
#
# Image pytorch for site perlmutter, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch .        (or podman build, or buildah build)
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
# step 42e5634146b8d4b1f7351c2bca15f0c396921d0811ff1d437f7caf71120fea3b
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=2.3.1", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=nvidia", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v2.3.1 413a2d315ee8485488fb4fdcc0012e029f570b6b false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 19c903ab31449a913f7ff9a59c5016d7bd66b24c4ea01ca97d28e3b880d1cb1b
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step ab75031994c98f05c52d7c5544041c994f31a54d7ae2bbefb50d74f22eb83a0d
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=nvidia", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=none", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step aaaefac1d99d9e96302d489d33ecf7df975f9dceb4c788eaab0f7bc116483dd3
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

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step f1e60753c5cf1521470b2f84233273b98eb8acd15264d9e0b3d461dd2e4fea95
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
      org.sifwright.site="perlmutter" \
      org.sifwright.plan="f1e60753c5cf1521470b2f84233273b98eb8acd15264d9e0b3d461dd2e4fea95" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.libfabric="42e5634146b8d4b1f7351c2bca15f0c396921d0811ff1d437f7caf71120fea3b" \
      org.sifwright.step.pytorch-wheel="19c903ab31449a913f7ff9a59c5016d7bd66b24c4ea01ca97d28e3b880d1cb1b" \
      org.sifwright.step.aws-ofi-nccl="ab75031994c98f05c52d7c5544041c994f31a54d7ae2bbefb50d74f22eb83a0d" \
      org.sifwright.step.torch-extras="aaaefac1d99d9e96302d489d33ecf7df975f9dceb4c788eaab0f7bc116483dd3" \
      org.sifwright.step.run-scripts="f1e60753c5cf1521470b2f84233273b98eb8acd15264d9e0b3d461dd2e4fea95" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="2.3.1" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="nvidia" \
      org.sifwright.option.pytorch-wheel.version="2.10.0" \
      org.sifwright.option.pytorch-wheel.variant="cu126" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.aws-ofi-nccl.gpu="nvidia" \
      org.sifwright.option.aws-ofi-nccl.version="1.19.2" \
      org.sifwright.option.aws-ofi-nccl.proven="none" \
      org.sifwright.option.aws-ofi-nccl.provider="cxi" \
      org.sifwright.option.torch-extras.vision="0.25.0" \
      org.sifwright.option.torch-extras.audio="2.10.0" \
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
