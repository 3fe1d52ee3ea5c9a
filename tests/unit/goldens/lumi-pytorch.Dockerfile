# Written by sifwright from defs/. The next render replaces this folder.
# Image pytorch for site lumi: PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one
# Build it by hand, in this folder:  docker build -t pytorch .  (or podman build, or buildah build)
FROM docker.io/rocm/dev-ubuntu-24.04:7.0.2-complete
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-rocm: AMD's Ubuntu image with all of ROCm in /opt/rocm
# step e0bed89d6f60c722c4d85bec1507f11759c4d786d826297322f7490e68c041bf
COPY layers/base-rocm/ /.sifwright/layers/base-rocm/
RUN ["env", \
     "OPT_ROCM=7.0.2", \
     "OPT_IMAGE=rocm/dev-ubuntu-24.04:7.0.2-complete", \
     "OPT_UPDATES=true", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-rocm"]
ENV ROCM_PATH="/opt/rocm" \
    PATH="/opt/rocm/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step 06ea838bd9eb05181359ece1f414c60e4934108c2147c9b3245b15c94c988111
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 57a87d2e42cb07ee64112fd2d9fab201e435c7f3da26ccd9701cf6d6a5d45727
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step bed4d12936bc1675aa67b974239a8c8acabfa00af6b336b9ff006b12322dba16
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=2.1.0", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=amd", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v2.1.0 cf173800a23505a0c6ec9ad42b935bde60a57da2 false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step f110aa7144d78475668dd66a22b4d26c49766e9e8b14c464a3aa8d038e0f128c
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=rocm7.0", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric (aws/aws-ofi-nccl)
# step 2fe2914358cba40f1238e49041da1cf75bc084f15efd22d10a7bc9c8e45c97ea
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=2.3.1 (Frontier)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step fe98dab00e559bd8873ed8ef3486b920d109bf373544827e518a6beed284d149
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
     "OPT_VARIANT=rocm7.0", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 4e3bbd73b176a2ec6b1052fdcfed5570503cf8906ec97d4cd5dc2caf5af4e613
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# The tests and the plan stay in the image; nothing of the build does.
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch" \
      org.opencontainers.image.description="PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="lumi" \
      org.sifwright.plan="4e3bbd73b176a2ec6b1052fdcfed5570503cf8906ec97d4cd5dc2caf5af4e613"
# Any user id works: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
