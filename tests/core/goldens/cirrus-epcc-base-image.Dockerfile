# Written by sifwright, with the folder it stands in, which the next render replaces.
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
# step f12876de6e7d9a76d98950573523031b3a6ba1f93cc9fd6ca5578120336feb1e
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
     "bash", "/.sifwright/run", "base-image"]
ENV PATH="/opt/base-image/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/base-image/activate" \
    PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step d6ed063c2934af7c6cfd47451d1141698c6ae7e3bb9819481d5546c18f4ec2a7
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
      org.sifwright.plan="d6ed063c2934af7c6cfd47451d1141698c6ae7e3bb9819481d5546c18f4ec2a7" \
      org.sifwright.step.base-image="f12876de6e7d9a76d98950573523031b3a6ba1f93cc9fd6ca5578120336feb1e" \
      org.sifwright.step.run-scripts="d6ed063c2934af7c6cfd47451d1141698c6ae7e3bb9819481d5546c18f4ec2a7" \
      org.sifwright.option.base-image.from="docker://pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime" \
      org.sifwright.option.base-image.python="3.10" \
      org.sifwright.option.base-image.torch="2.3.1" \
      org.sifwright.option.base-image.cuda="12.1" \
      org.sifwright.option.base-image.program="/opt/conda/bin/python"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
