FROM condaforge/miniforge3:24.9.0-0
ENV SITE_PACKAGES=$CONDA_DIR/lib/python3.12/site-packages
