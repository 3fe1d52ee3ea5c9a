# syntax=docker/dockerfile:1
FROM spack/ubuntu-jammy:0.22
RUN --mount=type=bind,source=app,target=/mirror \
    spack mirror add local /mirror && spack install zlib
