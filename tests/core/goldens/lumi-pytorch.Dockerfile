# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels, with NCCL's plugin where the site's network needs one
#
# Image pytorch for site lumi, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch .        (or podman build, or buildah build)
FROM docker.io/rocm/dev-ubuntu-24.04:7.0.2-complete
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-rocm: AMD's Ubuntu image with all of ROCm in /opt/rocm
# step 4b97379bd15ed644cf6353328f6b948eda9f1f933f6847d9afe2cd8862d5ebd9
COPY layers/base-rocm/ /.sifwright/layers/base-rocm/
RUN ["env", \
     "OPT_ROCM=7.0.2", \
     "OPT_IMAGE=rocm/dev-ubuntu-24.04:7.0.2-complete", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-rocm"]
ENV ROCM_PATH="/opt/rocm" \
    PATH="/opt/rocm/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step cb5f7465974a35f3b5d5f77038c34142a97b24fcdd4969a9930c9d62a4f3145c
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 43d754860d3247affe091440a418b1e91e81cecc6b9f508cf16ffbac23eac9d0
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step aa9c8fd73ca172c8349268db3dd623e2fa9a3e893d618f8d350ca0a5492a861c
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
# step b83749b42c4d2d6db1b71c752d64c4a38b36e2760cdf690ffe92c8f96352ba84
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=rocm7.0", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step 472f1f8da61c2204a62d157728b84f498e65871455266cb41882c0f9887f868d
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=2.3.1 (Frontier)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step e55c743592d0e17dcc8453aa432fe57b51290a69e1417f5dba103fcf8e17af08
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
# step 32a222770944305b4d8e521242973bb5049ccf5c417e1b6102fdf3e842ce37d6
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
      org.sifwright.site="lumi" \
      org.sifwright.plan="32a222770944305b4d8e521242973bb5049ccf5c417e1b6102fdf3e842ce37d6" \
      org.sifwright.step.base-rocm="4b97379bd15ed644cf6353328f6b948eda9f1f933f6847d9afe2cd8862d5ebd9" \
      org.sifwright.step.python-venv="cb5f7465974a35f3b5d5f77038c34142a97b24fcdd4969a9930c9d62a4f3145c" \
      org.sifwright.step.build-tools="43d754860d3247affe091440a418b1e91e81cecc6b9f508cf16ffbac23eac9d0" \
      org.sifwright.step.libfabric="aa9c8fd73ca172c8349268db3dd623e2fa9a3e893d618f8d350ca0a5492a861c" \
      org.sifwright.step.pytorch-wheel="b83749b42c4d2d6db1b71c752d64c4a38b36e2760cdf690ffe92c8f96352ba84" \
      org.sifwright.step.aws-ofi-nccl="472f1f8da61c2204a62d157728b84f498e65871455266cb41882c0f9887f868d" \
      org.sifwright.step.torch-extras="e55c743592d0e17dcc8453aa432fe57b51290a69e1417f5dba103fcf8e17af08" \
      org.sifwright.step.run-scripts="32a222770944305b4d8e521242973bb5049ccf5c417e1b6102fdf3e842ce37d6" \
      org.sifwright.option.base-rocm.rocm="7.0.2" \
      org.sifwright.option.base-rocm.image="rocm/dev-ubuntu-24.04:7.0.2-complete" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="2.1.0" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="amd" \
      org.sifwright.option.pytorch-wheel.version="2.10.0" \
      org.sifwright.option.pytorch-wheel.variant="rocm7.0" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.aws-ofi-nccl.gpu="amd" \
      org.sifwright.option.aws-ofi-nccl.version="1.19.2" \
      org.sifwright.option.aws-ofi-nccl.provider="cxi" \
      org.sifwright.option.torch-extras.vision="0.25.0" \
      org.sifwright.option.torch-extras.audio="2.10.0" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="rocm7.0" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
