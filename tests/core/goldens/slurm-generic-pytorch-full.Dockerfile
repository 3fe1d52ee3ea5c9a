# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers
#
# Image pytorch-full for site slurm-generic, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-full .        (or podman build, or buildah build)
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

# mpich-wheel: MPICH from its binary wheel, for sites without an MPI of their own that would replace it
# step 1d4188d349703e39c5a096c6b6fc419c46d9210eadbdb63d083ccd0b11310c92
COPY layers/mpich-wheel/ /.sifwright/layers/mpich-wheel/
RUN ["env", \
     "OPT_VERSION=5.0.1", \
     "bash", "/.sifwright/run", "mpich-wheel"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 888ca51c821eabaeef9196d70c88232e46eced2329e21ab2981c15500bdac62b
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.13.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step af7a566e5162d7d0065d7b72ebdee75e83a81fc22fe42e89492b9ffe483e0478
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.28.0", \
     "OPT_AUDIO=", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# mpi4py: mpi4py, compiled against the image's MPI
# step cbf524d6442c6a2a705775f6c7f5504bdd920efab3b13a5697085e21c0fdcd2b
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step f4a6fc1860d3d81edcd1db9dacdaaad9fc5a72927fc75646bd25c31727e30061
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step e788b57877dd2fdad621496d058617528937acc22f9948698f930785f05ad5ab
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step c354651db577580d21b84a5f8013d2785e75763171cb02d4440af0b3bebaf3d2
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 6146d61b5c5766fdc90142120ba09eae3d6580b60fdd70581eca2deca68cef8d
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-full" \
      org.opencontainers.image.description="PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="slurm-generic" \
      org.sifwright.plan="6146d61b5c5766fdc90142120ba09eae3d6580b60fdd70581eca2deca68cef8d" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.mpich-wheel="1d4188d349703e39c5a096c6b6fc419c46d9210eadbdb63d083ccd0b11310c92" \
      org.sifwright.step.pytorch-wheel="888ca51c821eabaeef9196d70c88232e46eced2329e21ab2981c15500bdac62b" \
      org.sifwright.step.torch-extras="af7a566e5162d7d0065d7b72ebdee75e83a81fc22fe42e89492b9ffe483e0478" \
      org.sifwright.step.mpi4py="cbf524d6442c6a2a705775f6c7f5504bdd920efab3b13a5697085e21c0fdcd2b" \
      org.sifwright.step.deepspeed="f4a6fc1860d3d81edcd1db9dacdaaad9fc5a72927fc75646bd25c31727e30061" \
      org.sifwright.step.accelerate="e788b57877dd2fdad621496d058617528937acc22f9948698f930785f05ad5ab" \
      org.sifwright.step.transformers="c354651db577580d21b84a5f8013d2785e75763171cb02d4440af0b3bebaf3d2" \
      org.sifwright.step.run-scripts="6146d61b5c5766fdc90142120ba09eae3d6580b60fdd70581eca2deca68cef8d" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.mpich-wheel.version="5.0.1" \
      org.sifwright.option.pytorch-wheel.version="2.13.0" \
      org.sifwright.option.pytorch-wheel.variant="cu126" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.vision="0.28.0" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cu126" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.deepspeed.version="0.19.8" \
      org.sifwright.option.deepspeed.ops="false" \
      org.sifwright.option.accelerate.version="1.15.0" \
      org.sifwright.option.transformers.version="5.23.0"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
