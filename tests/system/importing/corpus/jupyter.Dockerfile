FROM quay.io/jupyter/scipy-notebook:2024-10-07
USER root
RUN apt-get update && apt-get install -y graphviz && rm -rf /var/lib/apt/lists/*
USER ${NB_UID}
