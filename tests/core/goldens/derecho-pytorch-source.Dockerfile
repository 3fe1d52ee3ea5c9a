# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch and torchvision built from source for the site's GPUs, with the MPI backend
#
# Image pytorch-source for site derecho, from defs/. Build it by hand, in this folder:
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

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step c01083794d0d78c33fb4ba331cc79d05f99c4c2d08e7327cb481685d9ae819a8
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=3.4.3", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/3.4.3/mpich-3.4.3.tar.gz 3.4.3 8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-source: PyTorch built from its source, for the site's GPUs and MPI
# step 9583883b3f3aad1c402b51bfb3acfe828459a3f4311bca20ae208e5734f7932b
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
# step 5426b1221d3444c377762134ba3999901d54ed08c8cdfe48af12a3a79883a72e
COPY layers/torchvision-source/ /.sifwright/layers/torchvision-source/
RUN ["env", \
     "OPT_VERSION=0.25.0", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_80", \
     "SOURCE_TORCHVISION=archive https://github.com/pytorch/vision/archive/v0.25.0.tar.gz 0.25.0 a7ac1b3ab489d71f6e27edfad1e27616e4b8a9b1517e60fce4a950600d3510e8", \
     "bash", "/.sifwright/run", "torchvision-source"]

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step 3f2ec5c5a7d1c02402a97842a7a956c4fa17b267f13714eba5cdff06bf402651
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=nvidia", \
     "OPT_VERSION=1.18.0", \
     "OPT_PROVEN=1.22.0 (Isambard-AI)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.18.0 86ebeaf59a2348b22780023effdb682503747de7 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 7dfd6923ffd71ecf461bee8f3fcc77f99f2bdfee302a8020d831e09295e47292
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step ba5922f398ae0784b1a465369297d6fada6450778edc6b941353be69de4faab9
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
# step d4dbe4c02613814fe347eb428e3c9d1d18e4567b8d379701e0ebf77118f8abd9
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
      org.sifwright.site="derecho" \
      org.sifwright.plan="d4dbe4c02613814fe347eb428e3c9d1d18e4567b8d379701e0ebf77118f8abd9" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.libfabric="43f8482c7ac28f7d112478669f95b66e5003d90d68fb638c1fa445d98c48e3ac" \
      org.sifwright.step.mpich="c01083794d0d78c33fb4ba331cc79d05f99c4c2d08e7327cb481685d9ae819a8" \
      org.sifwright.step.pytorch-source="9583883b3f3aad1c402b51bfb3acfe828459a3f4311bca20ae208e5734f7932b" \
      org.sifwright.step.torchvision-source="5426b1221d3444c377762134ba3999901d54ed08c8cdfe48af12a3a79883a72e" \
      org.sifwright.step.aws-ofi-nccl="3f2ec5c5a7d1c02402a97842a7a956c4fa17b267f13714eba5cdff06bf402651" \
      org.sifwright.step.mpi4py="7dfd6923ffd71ecf461bee8f3fcc77f99f2bdfee302a8020d831e09295e47292" \
      org.sifwright.step.torch-extras="ba5922f398ae0784b1a465369297d6fada6450778edc6b941353be69de4faab9" \
      org.sifwright.step.run-scripts="d4dbe4c02613814fe347eb428e3c9d1d18e4567b8d379701e0ebf77118f8abd9" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="1.22.0" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="nvidia" \
      org.sifwright.option.mpich.version="3.4.3" \
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
      org.sifwright.option.aws-ofi-nccl.gpu="nvidia" \
      org.sifwright.option.aws-ofi-nccl.version="1.18.0" \
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
