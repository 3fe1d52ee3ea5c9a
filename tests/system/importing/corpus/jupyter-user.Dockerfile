FROM quay.io/jupyter/minimal-notebook:2024-10-07
USER root
RUN mkdir /data
USER jovyan
RUN mamba install -y xarray
