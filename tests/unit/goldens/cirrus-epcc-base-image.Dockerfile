# Written by sifwright with the files of this folder, which the next render replaces.
#
# Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts
#
# Image base-image for site cirrus-epcc, from defs/. Build it by hand, in this folder:
#   docker build -t base-image .        (or podman build, or buildah build)
FROM docker.io/pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-image: Somebody else's image, such as pytorch/pytorch, NVIDIA's (NGC) or AMD's rocm/pytorch, with what is in it
# step 9b105f8076ef3d1f2b233f91e14d9d4ad4c0eb2faa39e90dc591156c78e3e714
COPY layers/base-image/ /.sifwright/layers/base-image/
RUN ["env", \
     "OPT_FROM=docker://pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime", \
     "OPT_PYTHON=3.10", \
     "OPT_TORCH=2.3.1", \
     "OPT_CUDA=12.1", \
     "OPT_ROCM=", \
     "OPT_PROGRAM=/opt/conda/bin/python", \
     "OPT_PLUGINS=", \
     "OPT_UNSET=", \
     "OPT_UPDATES=false", \
     "bash", "/.sifwright/run", "base-image"]
ENV PATH="/opt/base-image/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/base-image/activate" \
    PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 4e71792d759bf3e0793533410555d7919b339fe6c00fce2fbe9f9fee9613f0bf
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
      org.sifwright.site="cirrus-epcc" \
      org.sifwright.plan="4e71792d759bf3e0793533410555d7919b339fe6c00fce2fbe9f9fee9613f0bf"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
