FROM continuumio/miniconda3:24.9.2-0
COPY environment.yml /tmp/environment.yml
RUN conda env create -f /tmp/environment.yml && conda clean -afy
ENV PATH=/opt/conda/envs/work/bin:$PATH CONDA_DEFAULT_ENV=work
ENTRYPOINT ["conda", "run", "--no-capture-output", "-n", "work"]
CMD ["python"]
