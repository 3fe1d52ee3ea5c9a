# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch and torchvision built from source for the site's GPUs, with the MPI backend
#
# Image pytorch-source for site lumi, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-source .        (or podman build, or buildah build)
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

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step 107b91ebd9e175e96aade68e520410f699fe31564e5e9fa560c349a859eef901
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=3.4.3", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/3.4.3/mpich-3.4.3.tar.gz 3.4.3 8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-source: PyTorch built from its source, for the site's GPUs and MPI
# step e0b1ffd7ceae3fada32ed2f1006b11c560f479b165b9803c375b9130109b5c50
COPY layers/pytorch-source/ /.sifwright/layers/pytorch-source/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VENDOR=amd", \
     "OPT_ARCH=gfx90a", \
     "OPT_MPI_PATCH=2.0", \
     "OPT_SYSTEM_NCCL=true", \
     "OPT_NUMPY_LINE=numpy2-4", \
     "OPT_NUMPY=2.4.6", \
     "SOURCE_PYTORCH=git https://github.com/pytorch/pytorch.git v2.10.0 449b1768410104d3ed79d3bcfe4ba1d65c7f22c0 true", \
     "bash", "/.sifwright/run", "pytorch-source"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torchvision-source: torchvision built from its source, beside a torch that was
# step 8bb0c78b5e1db99567081d14cdd7e82285f50fea8356b699c632c4e5d72a21df
COPY layers/torchvision-source/ /.sifwright/layers/torchvision-source/
RUN ["env", \
     "OPT_VERSION=0.25.0", \
     "OPT_VENDOR=amd", \
     "OPT_ARCH=gfx90a", \
     "SOURCE_TORCHVISION=archive https://github.com/pytorch/vision/archive/v0.25.0.tar.gz 0.25.0 a7ac1b3ab489d71f6e27edfad1e27616e4b8a9b1517e60fce4a950600d3510e8", \
     "bash", "/.sifwright/run", "torchvision-source"]

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step d3389a0d2bd41c200b12781c4a80aaddcac638484b5307cc356c1fd469cb630d
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=2.3.1 (Frontier)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 1117cbb194edc251289740f301e62987658f8f6ec282184ee08d825a50530ae4
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 3141353e53e4b9c731a67eafcbcdbbfa6db6de8727605f754c418ac621dabfa1
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
# step d4ed62c741ff0fc176e3b2bc6650de85bfd67f6b3c93fa2a15da51ce9cde400b
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
      org.sifwright.site="lumi" \
      org.sifwright.plan="d4ed62c741ff0fc176e3b2bc6650de85bfd67f6b3c93fa2a15da51ce9cde400b" \
      org.sifwright.step.base-rocm="4b97379bd15ed644cf6353328f6b948eda9f1f933f6847d9afe2cd8862d5ebd9" \
      org.sifwright.step.python-venv="cb5f7465974a35f3b5d5f77038c34142a97b24fcdd4969a9930c9d62a4f3145c" \
      org.sifwright.step.build-tools="43d754860d3247affe091440a418b1e91e81cecc6b9f508cf16ffbac23eac9d0" \
      org.sifwright.step.libfabric="aa9c8fd73ca172c8349268db3dd623e2fa9a3e893d618f8d350ca0a5492a861c" \
      org.sifwright.step.mpich="107b91ebd9e175e96aade68e520410f699fe31564e5e9fa560c349a859eef901" \
      org.sifwright.step.pytorch-source="e0b1ffd7ceae3fada32ed2f1006b11c560f479b165b9803c375b9130109b5c50" \
      org.sifwright.step.torchvision-source="8bb0c78b5e1db99567081d14cdd7e82285f50fea8356b699c632c4e5d72a21df" \
      org.sifwright.step.aws-ofi-nccl="d3389a0d2bd41c200b12781c4a80aaddcac638484b5307cc356c1fd469cb630d" \
      org.sifwright.step.mpi4py="1117cbb194edc251289740f301e62987658f8f6ec282184ee08d825a50530ae4" \
      org.sifwright.step.torch-extras="3141353e53e4b9c731a67eafcbcdbbfa6db6de8727605f754c418ac621dabfa1" \
      org.sifwright.step.run-scripts="d4ed62c741ff0fc176e3b2bc6650de85bfd67f6b3c93fa2a15da51ce9cde400b" \
      org.sifwright.option.base-rocm.rocm="7.0.2" \
      org.sifwright.option.base-rocm.image="rocm/dev-ubuntu-24.04:7.0.2-complete" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="2.1.0" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="amd" \
      org.sifwright.option.mpich.version="3.4.3" \
      org.sifwright.option.pytorch-source.version="2.10.0" \
      org.sifwright.option.pytorch-source.vendor="amd" \
      org.sifwright.option.pytorch-source.arch="gfx90a" \
      org.sifwright.option.pytorch-source.mpi-patch="2.0" \
      org.sifwright.option.pytorch-source.system-nccl="true" \
      org.sifwright.option.pytorch-source.numpy-line="numpy2-4" \
      org.sifwright.option.pytorch-source.numpy="2.4.6" \
      org.sifwright.option.torchvision-source.version="0.25.0" \
      org.sifwright.option.torchvision-source.vendor="amd" \
      org.sifwright.option.torchvision-source.arch="gfx90a" \
      org.sifwright.option.aws-ofi-nccl.gpu="amd" \
      org.sifwright.option.aws-ofi-nccl.version="1.19.2" \
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
