# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one
#
# Image pytorch for site derecho, from defs/. Build it by hand, in this folder:
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
# step 43f8482c7ac28f7d112478669f95b66e5003d90d68fb638c1fa445d98c48e3ac
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=1.22.0", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=nvidia", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v1.22.0 159219639b7fd69d140892120121bbb4d694e295 false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 5d8c7759a0093e97f8c9e1f786345e3f9cd0be3b833f3f0616ea13940477aa12
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.8.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step ec35e78059d7a7175d821447fe02dd6f5b2b13d9306e88051eb4935c762d10eb
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=nvidia", \
     "OPT_VERSION=1.18.0", \
     "OPT_PROVEN=1.22.0 (Isambard-AI)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.18.0 86ebeaf59a2348b22780023effdb682503747de7 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 4312d5394463a7f3074c42d3ad13353e225a1cb8e0cbc27dd4f90de04bc61fe0
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.23.0", \
     "OPT_AUDIO=2.8.0", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.2.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step f9adc57ddff372985f65124f6c01213a88872bef01df9a0f48db780af1452d23
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
      org.sifwright.site="derecho" \
      org.sifwright.plan="f9adc57ddff372985f65124f6c01213a88872bef01df9a0f48db780af1452d23" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.libfabric="43f8482c7ac28f7d112478669f95b66e5003d90d68fb638c1fa445d98c48e3ac" \
      org.sifwright.step.pytorch-wheel="5d8c7759a0093e97f8c9e1f786345e3f9cd0be3b833f3f0616ea13940477aa12" \
      org.sifwright.step.aws-ofi-nccl="ec35e78059d7a7175d821447fe02dd6f5b2b13d9306e88051eb4935c762d10eb" \
      org.sifwright.step.torch-extras="4312d5394463a7f3074c42d3ad13353e225a1cb8e0cbc27dd4f90de04bc61fe0" \
      org.sifwright.step.run-scripts="f9adc57ddff372985f65124f6c01213a88872bef01df9a0f48db780af1452d23" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="1.22.0" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="nvidia" \
      org.sifwright.option.pytorch-wheel.version="2.8.0" \
      org.sifwright.option.pytorch-wheel.variant="cu126" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.aws-ofi-nccl.gpu="nvidia" \
      org.sifwright.option.aws-ofi-nccl.version="1.18.0" \
      org.sifwright.option.aws-ofi-nccl.provider="cxi" \
      org.sifwright.option.torch-extras.vision="0.23.0" \
      org.sifwright.option.torch-extras.audio="2.8.0" \
      org.sifwright.option.torch-extras.numpy="2.2.6" \
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
