FROM continuumio/miniconda3:24.9.2-0
COPY environment.yml /tmp/environment.yml
RUN conda env create -f /tmp/environment.yml && conda clean -afy
ENV PATH=/opt/conda/envs/train/bin:$PATH CONDA_DEFAULT_ENV=train
ENTRYPOINT ["conda", "run", "--no-capture-output", "-n", "train"]
CMD ["python"]
