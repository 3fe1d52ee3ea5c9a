# Written by sifwright from defs/. The next render replaces this folder.
# Image base-image for site isambard-ai: Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts
# Build it by hand, in this folder:  docker build -t base-image .  (or podman build, or buildah build)
FROM nvcr.io/nvidia/pytorch:25.08-py3
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-image: Somebody else's image, such as pytorch/pytorch, NVIDIA's (NGC) or AMD's rocm/pytorch, with what is in it
# step 884abb2e2735
COPY layers/base-image/ /.sifwright/layers/base-image/
RUN ["env", \
     "OPT_FROM=docker://nvcr.io/nvidia/pytorch:25.08-py3", \
     "OPT_PYTHON=3.12", \
     "OPT_TORCH=2.8.0", \
     "OPT_CUDA=13.0", \
     "OPT_ROCM=", \
     "OPT_PROGRAM=", \
     "OPT_PLUGINS=/opt/amazon/ofi-nccl /opt/amazon/aws-ofi-nccl /opt/hpcx/nccl_rdma_sharp_plugin /opt/hpcx/hcoll /opt/hpcx/sharp", \
     "OPT_UNSET=NCCL_NET_PLUGIN PIP_CONSTRAINT", \
     "OPT_UPDATES=false", \
     "bash", "/.sifwright/run", "base-image"]
ENV PATH="/opt/base-image/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/base-image/activate" \
    PYTHONNOUSERSITE="1" \
    PIP_CONSTRAINT="/opt/sifwright/constraints.txt" \
    PIP_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step d7806c21397e
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step 21babcf1cdb0
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
# step 78f950c41a2d
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=nvidia", \
     "OPT_VERSION=1.20.0", \
     "OPT_PROVEN=2.6.0 (CSCS Alps)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.20.0 a2a6d08ea98296f99596b5c18b30b8a20d74f609 submodules=true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 7e78136f181c
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# The tests and the plan stay in the image; nothing of the build does.
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="base-image" \
      org.opencontainers.image.description="Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="isambard-ai" \
      org.sifwright.plan="7e78136f181c61599ce4b748eccd10646de6409885dddb235ed0d30620498305"
# Any user id works: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
