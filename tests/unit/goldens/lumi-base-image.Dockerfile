# Written by sifwright with the files of this folder, which the next render replaces.
#
# Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts
#
# Image base-image for site lumi, from defs/. Build it by hand, in this folder:
#   docker build -t base-image .        (or podman build, or buildah build)
FROM docker.io/rocm/pytorch:rocm6.4.2_ubuntu24.04_py3.12_pytorch_release_2.6.0
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-image: Somebody else's image, such as pytorch/pytorch, NVIDIA's (NGC) or AMD's rocm/pytorch, with what is in it
# step ed21ac7649afd3ad462d1388694a874e66656634cc83c68979dc1f19590328eb
COPY layers/base-image/ /.sifwright/layers/base-image/
RUN ["env", \
     "OPT_FROM=docker://rocm/pytorch:rocm6.4.2_ubuntu24.04_py3.12_pytorch_release_2.6.0", \
     "OPT_PYTHON=3.12", \
     "OPT_TORCH=2.6.0", \
     "OPT_CUDA=", \
     "OPT_ROCM=6.4", \
     "OPT_PROGRAM=", \
     "OPT_PLUGINS=", \
     "OPT_UNSET=", \
     "OPT_UPDATES=false", \
     "bash", "/.sifwright/run", "base-image"]
ENV PATH="/opt/base-image/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/base-image/activate" \
    PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 588e5970d0e34f76381fc05c6dd0394325a744df3e73ca5c166c0e1203ce443b
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step 54799c05f1b4a603d437900ecf4e0e27be4d1e81444aa73080d05615b7b0e7b9
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

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric (aws/aws-ofi-nccl)
# step 200ea52f15b1e02cce52c814d1b8417dcda9f0ae9f8eb70afd2b921de30dc4e3
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=2.3.1 (Frontier)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 4d3d69e7a9a83efa905d6af1288f1812ed13ab25d89d94769c10b6178c6e5de1
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="base-image" \
      org.opencontainers.image.description="Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="lumi" \
      org.sifwright.plan="4d3d69e7a9a83efa905d6af1288f1812ed13ab25d89d94769c10b6178c6e5de1"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
